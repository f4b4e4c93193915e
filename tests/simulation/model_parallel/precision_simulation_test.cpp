// Mixed precision, loss scaling, wire types and recomputation over stages and links.
#include <boost/test/unit_test.hpp>

#include <cmath>

#include "scenario.hpp"

namespace troupe::mp::test {
namespace {

/// An overflow of layer 3's gradients in one step.
Scenario overflowing(Scenario scenario, int step) {
  scenario.precision = v1::PRECISION_FLOAT16;
  scenario.special_layer = 3;
  scenario.special_attributes = {{"overflow_at_step", step}};
  return scenario;
}

BOOST_AUTO_TEST_CASE(an_overflow_in_one_stage_skips_the_step_on_all) {
  for (const auto& cut : std::vector<std::vector<std::uint32_t>>{{0}, {0, 3}, {0, 1, 2, 3, 4, 5}}) {
    Running running(overflowing(cut_at(cut, 2), 2));
    value_of(running.pipeline().train_step());
    const auto weights = [&] {
      auto state = value_of(running.pipeline().export_model());
      for (auto it = state.begin(); it != state.end();)
        it = it->first.find("running_mean") != std::string::npos ? state.erase(it) : std::next(it);
      return state;
    };
    const auto before = weights();
    const auto skipped = value_of(running.pipeline().train_step());
    BOOST_TEST(skipped.skipped);
    BOOST_TEST(skipped.loss_scale == 65536);
    BOOST_TEST(!std::isfinite(skipped.grad_norm));
    BOOST_TEST(same_state(weights(), before));
    const auto next = value_of(running.pipeline().train_step());
    BOOST_TEST(!next.skipped);
    BOOST_TEST(next.step == 3u);
    BOOST_TEST(next.loss_scale == 32768);
    BOOST_TEST(!same_state(weights(), before));
  }
}

BOOST_AUTO_TEST_CASE(scaled_training_does_not_depend_on_the_cut) {
  auto one = overflowing(Scenario(), 2);
  one.steps = 6;
  one.loss_scaling.emplace().set_growth_interval(2);
  const auto reference = train(one);
  std::vector<double> scales;
  for (const auto& step : reference.steps) scales.push_back(step.loss_scale);
  const std::vector<double> expected{65536, 65536, 32768, 32768, 65536, 65536};
  BOOST_TEST(scales == expected, boost::test_tools::per_element());
  for (const auto& cut : std::vector<std::vector<std::uint32_t>>{{0, 3}, {0, 1, 2, 3, 4, 5}}) {
    auto parts = overflowing(cut_at(cut, 3), 2);
    parts.steps = 6;
    parts.loss_scaling = one.loss_scaling;
    parts.simulation.seed = 40 + cut.size();
    BOOST_TEST(same_state(train(parts).state, reference.state));
  }
}

BOOST_AUTO_TEST_CASE(an_overflow_without_scaling_fails_the_job_and_names_the_weight) {
  auto scenario = overflowing(cut_at({0, 3}, 2), 2);
  scenario.precision = v1::PRECISION_BFLOAT16;
  Running running(scenario);
  value_of(running.pipeline().train_step());
  const auto failed = running.pipeline().train_step();
  BOOST_REQUIRE(!failed.ok());
  BOOST_TEST(failed.error().to_string() ==
             "step 2: the gradient of l3.weight is not finite; lower the learning rate, or set "
             "clip_grad_norm");
}

BOOST_AUTO_TEST_CASE(mixed_precision_wires_and_recomputation_do_not_depend_on_the_cut) {
  for (const auto precision :
       {v1::PRECISION_FLOAT32, v1::PRECISION_FLOAT64, v1::PRECISION_BFLOAT16}) {
    Scenario one;
    one.precision = precision;
    auto& wire = one.rules.wire.emplace_back();
    wire.set_layers("l?");
    wire.set_dtype(v1::DTYPE_BFLOAT16);
    const auto reference = train(one);
    for (const auto& cut : std::vector<std::vector<std::uint32_t>>{{0, 3}, {0, 1, 2, 3, 4, 5}}) {
      auto parts = cut_at(cut, 3);
      parts.precision = precision;
      parts.rules = one.rules;
      parts.rules.recompute.emplace_back().set_layers("l*");
      BOOST_TEST(same_state(train(parts).state, reference.state));
    }
  }
}

BOOST_AUTO_TEST_CASE(recomputation_lowers_the_reported_peaks) {
  const auto peak = [](bool recompute) {
    auto scenario = cut_at({0, 3}, 2);
    scenario.micro_batch_size = 1;
    if (recompute) scenario.rules.recompute.emplace_back().set_layers("*");
    std::uint64_t sum = 0;
    for (const auto& times : train(scenario).steps[0].times) sum += times.peak_live_bytes();
    return sum;
  };
  BOOST_TEST(peak(true) < peak(false));
}

BOOST_AUTO_TEST_CASE(bfloat16_values_take_half_the_bytes_on_a_link) {
  const auto bytes = [](v1::DType dtype) {
    auto scenario = cut_at({0, 3}, 2);
    auto& wire = scenario.rules.wire.emplace_back();
    wire.set_layers("l2");
    wire.set_dtype(dtype);
    scenario.simulation.limits.set_admission_budget_bytes(1);
    Running running(scenario);
    train(running, 1);
    for (const auto& link : running.cluster().link_status("a"))
      if (link.traffic() == static_cast<std::uint32_t>(TrafficClass::activation))
        return link.peak_admission_bytes();
    return std::uint64_t{0};
  };
  BOOST_TEST(bytes(v1::DTYPE_FLOAT32) > 0u);
  BOOST_TEST(2 * bytes(v1::DTYPE_BFLOAT16) == bytes(v1::DTYPE_FLOAT32));
}

}  // namespace
}  // namespace troupe::mp::test
