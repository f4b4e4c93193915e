// What a job says of precision, wire types, recomputation and loss scaling.
#include "core/precision.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>

#include "core/loss_scaler.hpp"
#include "core/plan.hpp"

using namespace troupe;
using namespace troupe::mp;

namespace {

PlanRequest request(v1::Precision precision, const std::string& device = "cpu") {
  PlanRequest request;
  request.job = "job";
  request.nodes = {"n"};
  for (const std::string name : {"h.0", "h.1", "h.2", "head"}) {
    v1::Layer layer;
    layer.set_name(name);
    layer.set_kind("tanh");
    request.layers.push_back(layer);
  }
  for (const std::string first : {"", "h.2"}) {
    v1::Stage stage;
    stage.set_node("n");
    stage.set_device(device);
    stage.set_first_layer(first);
    request.stages.push_back(stage);
  }
  request.loss.emplace().mutable_mse();
  request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  request.precision = precision;
  request.locate = [](const std::string& path) { return "at " + path; };
  return request;
}

void add_wire(PlanRequest& request, const std::string& layers, v1::DType dtype) {
  auto& wire = request.rules.wire.emplace_back();
  wire.set_layers(layers);
  wire.set_dtype(dtype);
}

Plan plan_of(const PlanRequest& request) {
  auto plan = make_plan(request);
  if (!plan) throw std::runtime_error(plan.error().to_string());
  return std::move(plan).value();
}

void check_refused(const PlanRequest& request, const std::string& text) {
  const auto plan = make_plan(request);
  BOOST_REQUIRE(!plan.ok());
  BOOST_TEST((plan.error().code == ErrorCode::bad_input));
  BOOST_TEST(plan.error().to_string() == text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_between_stages_have_the_type_of_the_precision) {
  for (const auto& [precision, dtype] : {std::pair(v1::PRECISION_UNSPECIFIED, v1::DTYPE_FLOAT32),
                                         std::pair(v1::PRECISION_FLOAT64, v1::DTYPE_FLOAT64),
                                         std::pair(v1::PRECISION_BFLOAT16, v1::DTYPE_BFLOAT16)}) {
    const auto plan = plan_of(request(precision));
    BOOST_TEST(plan.stages[0].config.outbound(0).dtype() == dtype);
    BOOST_TEST(plan.stages[1].config.inbound(0).dtype() == dtype);
    BOOST_TEST(plan.stages[0].config.inbound(0).dtype() == v1::DTYPE_UNSPECIFIED);  // a field
  }
}

BOOST_AUTO_TEST_CASE(the_first_wire_type_that_matches_counts) {
  auto wired = request(v1::PRECISION_FLOAT32);
  add_wire(wired, "h.1", v1::DTYPE_FLOAT32);
  add_wire(wired, "h.*", v1::DTYPE_BFLOAT16);
  auto plan = plan_of(wired);
  BOOST_TEST(plan.stages[0].config.layer_settings(0).wire() == v1::DTYPE_BFLOAT16);
  BOOST_TEST(plan.stages[0].config.layer_settings(1).wire() == v1::DTYPE_FLOAT32);
  BOOST_TEST(plan.stages[0].config.outbound(0).dtype() == v1::DTYPE_FLOAT32);
  wired.rules.wire.erase(wired.rules.wire.begin());
  plan = plan_of(wired);
  BOOST_TEST(plan.stages[0].config.outbound(0).dtype() == v1::DTYPE_BFLOAT16);
  BOOST_TEST(plan.stages[1].config.inbound(0).dtype() == v1::DTYPE_BFLOAT16);
}

BOOST_AUTO_TEST_CASE(wire_types_must_lose_digits_only) {
  auto wired = request(v1::PRECISION_BFLOAT16);
  add_wire(wired, "h.1", v1::DTYPE_FLOAT32);
  check_refused(wired,
                "at wire[0].dtype: DTYPE_FLOAT32 is no wire type for activations of bfloat16; "
                "DTYPE_BFLOAT16 is one for float32 and float64, DTYPE_FLOAT32 for float64");
  auto integers = request(v1::PRECISION_FLOAT32);
  add_wire(integers, "h.1", v1::DTYPE_INT8);
  BOOST_TEST(!make_plan(integers).ok());
}

BOOST_AUTO_TEST_CASE(a_pattern_without_a_layer_is_refused) {
  auto wired = request(v1::PRECISION_FLOAT32);
  add_wire(wired, "g.*", v1::DTYPE_BFLOAT16);
  const std::string text =
      "no layer is called \"g.*\"; `*` stands for any characters, `?` for one; \"h.0\" is the "
      "first layer";
  check_refused(wired, "at wire[0].layers: " + text);
  auto recomputed = request(v1::PRECISION_FLOAT32);
  recomputed.rules.recompute.emplace_back().set_layers("h.*");
  recomputed.rules.recompute.emplace_back().set_layers("g.*");
  check_refused(recomputed, "at recompute[1].layers: " + text);
}

BOOST_AUTO_TEST_CASE(layers_are_recomputed_by_pattern_or_by_stage_but_never_the_loss) {
  auto recomputed = request(v1::PRECISION_FLOAT32);
  recomputed.rules.recompute.emplace_back().set_layers("h.1");
  recomputed.stages[1].set_recompute(true);
  const auto plan = plan_of(recomputed);
  BOOST_TEST(!plan.stages[0].config.layer_settings(0).recompute());
  BOOST_TEST(plan.stages[0].config.layer_settings(1).recompute());
  BOOST_TEST(plan.stages[1].config.layer_settings(0).recompute());
  BOOST_TEST(plan.stages[1].config.layer_settings(1).recompute());
  BOOST_TEST(!plan.stages[1].config.layer_settings(2).recompute());
}

BOOST_AUTO_TEST_CASE(float16_needs_a_device_that_has_it) {
  check_refused(
      request(v1::PRECISION_FLOAT16),
      "at stages[0].device: float16 on the device \"cpu\", which LibTorch cannot compute; "
      "use PRECISION_BFLOAT16, or a CUDA device");
  const auto plan = plan_of(request(v1::PRECISION_FLOAT16, "cuda:0"));
  BOOST_TEST(plan.loss_scaling.has_value());
  BOOST_TEST(plan.stages[1].config.loss_scale() == 65536);
  BOOST_TEST(!plan_of(request(v1::PRECISION_BFLOAT16)).loss_scaling.has_value());
}

BOOST_AUTO_TEST_CASE(loss_scaling_is_for_float16_and_a_loss_of_the_model) {
  auto scaled = request(v1::PRECISION_BFLOAT16);
  scaled.loss_scaling.emplace();
  check_refused(scaled,
                "at loss_scaling: PRECISION_BFLOAT16 needs no scaling of the loss; leave "
                "loss_scaling out, or use PRECISION_FLOAT16");
  auto driven = request(v1::PRECISION_FLOAT16, "cuda:0");
  driven.loss.reset();
  check_refused(driven,
                "at precision: PRECISION_FLOAT16 scales the loss, which the caller computes here; "
                "use PRECISION_BFLOAT16");
}

// --- the scaler: numbers by the documentation of torch.cuda.amp.GradScaler ---------------------

BOOST_AUTO_TEST_CASE(the_scale_halves_at_an_overflow_and_doubles_after_2000_good_steps) {
  LossScaler scaler;
  BOOST_TEST(scaler.scale() == 65536);
  scaler.step_done(true);
  BOOST_TEST(scaler.scale() == 32768);
  for (int i = 0; i < 1999; ++i) scaler.step_done(false);
  BOOST_TEST(scaler.scale() == 32768);
  scaler.step_done(false);
  BOOST_TEST(scaler.scale() == 65536);
  BOOST_TEST(scaler.steps_without_overflow() == 0u);
}

BOOST_AUTO_TEST_CASE(an_overflow_starts_the_count_again) {
  v1::LossScaling config;
  config.set_initial_scale(8);
  config.set_growth_interval(3);
  config.set_growth_factor(4);
  config.set_backoff_factor(0.25);
  LossScaler scaler(config);
  for (const bool overflow : {false, false, true}) scaler.step_done(overflow);
  BOOST_TEST(scaler.scale() == 2);
  for (int i = 0; i < 2; ++i) scaler.step_done(false);
  BOOST_TEST(scaler.scale() == 2);
  scaler.step_done(false);
  BOOST_TEST(scaler.scale() == 8);
}

BOOST_AUTO_TEST_CASE(the_scale_stays_a_float32_number) {
  v1::LossScaling config;
  config.set_initial_scale(std::ldexp(1, 127));
  config.set_growth_interval(1);
  LossScaler scaler(config);
  scaler.step_done(false);
  BOOST_TEST(scaler.scale() == std::ldexp(1, 127));
}
