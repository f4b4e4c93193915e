#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "scenario.hpp"

namespace troupe::mp::test {
namespace {

const std::vector<std::vector<std::uint32_t>> cuts = {{0},    {0, 3},    {0, 1},
                                                      {0, 5}, {0, 2, 4}, {0, 1, 2, 3, 4, 5}};

BOOST_AUTO_TEST_CASE(weights_are_the_same_whatever_cut_schedule_placement_and_timing) {
  const auto reference = train(Scenario());
  BOOST_TEST(!same_state(reference.initial, reference.state));
  std::uint64_t seed = 100;
  for (const auto& cut : cuts)
    for (const std::size_t nodes : {1, 2, 6})
      for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
        auto scenario = cut_at(cut, nodes);
        scenario.schedule = schedule;
        scenario.simulation.seed = ++seed;
        BOOST_TEST_CONTEXT("stages " << cut.size() << ", nodes " << nodes << ", schedule "
                                     << schedule << ", seed " << seed) {
          const auto outcome = train(scenario);
          BOOST_TEST(same_state(outcome.initial, reference.initial));
          BOOST_TEST(same_state(outcome.state, reference.state));
          for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
            BOOST_TEST(outcome.steps[i].totals.loss == reference.steps[i].totals.loss);
            BOOST_TEST(outcome.steps[i].grad_norm == reference.steps[i].grad_norm);
          }
        }
      }
}

BOOST_AUTO_TEST_CASE(steps_count_samples_of_uneven_batches_and_epochs) {
  auto scenario = cut_at({0, 2}, 2);
  const auto outcome = train(scenario);
  std::vector<std::uint64_t> samples;
  for (const auto& step : outcome.steps) samples.push_back(step.totals.samples);
  const std::vector<std::uint64_t> expected = {8, 8, 4, 8};
  BOOST_TEST(samples == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_takes_several_batches_up_to_the_end_of_an_epoch) {
  Scenario scenario;
  scenario.batches_in_step = 2;  // of 8, 8 and 4 samples; more than are prefetched
  scenario.ignore_index = 4;     // samples 4 and 14
  const auto reference = train(scenario);
  const auto& steps = reference.steps;
  BOOST_REQUIRE_EQUAL(steps.size(), 4u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    BOOST_TEST(steps[i].step == i + 1);
    BOOST_TEST(steps[i].totals.samples == (i % 2 == 0 ? 16u : 4u));
    BOOST_TEST(steps[i].totals.counted == (i % 2 == 0 ? 14u : 4u));
  }
  auto counting_all = scenario;
  counting_all.ignore_index = -100;
  BOOST_TEST(!same_state(train(counting_all).state, reference.state));
  for (const auto& cut : cuts)
    for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
      auto cut_scenario = cut_at(cut, 2);
      cut_scenario.schedule = schedule;
      cut_scenario.batches_in_step = scenario.batches_in_step;
      cut_scenario.ignore_index = scenario.ignore_index;
      cut_scenario.simulation.seed = 400 + cut.size();
      BOOST_TEST(same_state(train(cut_scenario).state, reference.state));
    }
}

BOOST_AUTO_TEST_CASE(steps_of_whole_epochs_where_more_batches_are_asked_for) {
  auto scenario = cut_at({0, 2}, 2);
  scenario.batches_in_step = 50;
  scenario.steps = 2;
  for (const auto& step : train(scenario).steps)
    BOOST_TEST(step.totals.samples == samples_in_epoch);
}

BOOST_AUTO_TEST_CASE(fewer_micro_batches_than_stages_run) {
  for (const std::uint32_t micro_batch_size : {8, 4}) {
    Scenario one;
    one.micro_batch_size = micro_batch_size;
    auto six = cut_at({0, 1, 2, 3, 4, 5}, 3);
    six.micro_batch_size = micro_batch_size;
    BOOST_TEST(same_state(train(one).state, train(six).state));
  }
}

BOOST_AUTO_TEST_CASE(clipping_uses_one_norm_over_all_stages) {
  Scenario one;
  one.clip_grad_norm = 1e-3;
  auto three = cut_at({0, 2, 4}, 2);
  three.clip_grad_norm = 1e-3;
  const auto clipped = train(one);
  BOOST_TEST(same_state(clipped.state, train(three).state));
  BOOST_TEST(!same_state(clipped.state, train(Scenario()).state));
}

BOOST_AUTO_TEST_CASE(live_activations_stay_within_the_schedules_formula) {
  for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
    auto scenario = cut_at({0, 2, 4}, 3);
    scenario.schedule = schedule;
    scenario.micro_batch_size = 1;
    for (const auto& step : train(scenario).steps) {
      const auto micro_batches = static_cast<std::uint32_t>(step.totals.samples);
      for (const auto& times : step.times) {
        const auto window = schedule == v1::SCHEDULE_GPIPE
                                ? micro_batches
                                : std::min(micro_batches, 3 - times.stage());
        BOOST_TEST(times.peak_live_micro_batches() <= window);
        BOOST_TEST(times.peak_live_micro_batches() >= 1u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_stays_alive_after_a_step) {
  const auto outcome = train(cut_at({0, 2, 4}, 2));
  for (const auto& step : outcome.steps)
    for (const auto& times : step.times) BOOST_TEST(times.live_bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(links_stay_within_their_budgets_with_a_slow_last_stage) {
  auto scenario = cut_at({0, 3}, 2);
  scenario.micro_batch_size = 1;
  scenario.simulation.limits.set_admission_budget_bytes(40);
  Running running(scenario);
  running.cluster().slow_down(running.session().actor({"b", "stage.1"}), 20);
  const auto outcome = train(running, scenario.steps);
  BOOST_TEST(same_state(outcome.state, [&] {
    Scenario one;
    one.micro_batch_size = 1;
    return train(one).state;
  }()));
  // A micro-batch on a link is at most one row of inputs or activations: 16 bytes.
  std::size_t links = 0;
  for (const std::string node : {"a", "b", "driver"})
    for (const auto& link : running.cluster().link_status(node)) {
      if (link.traffic() != static_cast<std::uint32_t>(TrafficClass::activation) &&
          link.traffic() != static_cast<std::uint32_t>(TrafficClass::batch))
        continue;
      ++links;
      BOOST_TEST(link.peak_admission_bytes() > 0u);
      BOOST_TEST(link.peak_admission_bytes() <= 40u);
      BOOST_TEST(link.bytes_in_flight() == 0u);
    }
  BOOST_TEST(links >= 2u);  // inputs from the driver, activations from a to b
}

BOOST_AUTO_TEST_CASE(six_stages_pass_one_micro_batch_at_a_time_on_the_smallest_budgets) {
  const auto reference = train(Scenario());
  for (const std::size_t nodes : {1, 2, 3})
    for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B})
      BOOST_TEST_CONTEXT(nodes << " nodes, schedule " << schedule) {
        auto scenario = cut_at({0, 1, 2, 3, 4, 5}, nodes);
        scenario.schedule = schedule;
        scenario.simulation.seed = 300 + nodes;
        scenario.simulation.limits.set_admission_budget_bytes(1);
        scenario.simulation.limits.set_chunk_budget_bytes(64);  // one header and a few chunks
        scenario.simulation.limits.set_chunk_bytes(8);
        Running running(scenario);
        const auto outcome = train(running, scenario.steps);
        BOOST_TEST(same_state(outcome.state, reference.state));
        std::size_t links = 0;
        for (const auto& node : running.session().job().nodes())
          for (const auto& link : running.cluster().link_status(node.name())) {
            if (link.traffic() != static_cast<std::uint32_t>(TrafficClass::activation)) continue;
            if (link.peer() == node.name()) continue;  // nothing is cut into chunks there
            ++links;
            BOOST_TEST(link.peak_bytes_in_flight() > 0u);
            BOOST_TEST(link.peak_bytes_in_flight() <= 64u);
          }
        BOOST_TEST(links == (nodes == 1 ? 0u : nodes));  // from each node to the next, in a ring
      }
}

BOOST_AUTO_TEST_CASE(state_moves_between_different_cuts) {
  const auto trained = train(cut_at({0, 3}, 2));
  auto scenario = cut_at({0, 1, 4}, 3);
  scenario.weights_seed = 99;
  Running running(scenario);
  BOOST_TEST(!same_state(value_of(running.pipeline().export_model()), trained.state));
  BOOST_TEST(running.driver().load_state(trained.state, true, "file").ok());
  BOOST_TEST(same_state(value_of(running.pipeline().export_model()), trained.state));
}

BOOST_AUTO_TEST_CASE(state_with_wrong_names_is_refused) {
  Running running(cut_at({0, 3}, 2));
  auto state = value_of(running.pipeline().export_model());
  auto missing = state;
  missing.erase("l4.weight");
  const auto incomplete = running.driver().load_state(missing, true, "file");
  BOOST_REQUIRE(!incomplete.ok());
  BOOST_TEST(incomplete.error().to_string() ==
             "file: the tensor l4.weight is missing; it belongs to another model: change `model`, "
             "or give its weights");
  state["l9.weight"] = state["l4.weight"];
  const auto unknown = running.driver().load_state(state, true, "file");
  BOOST_REQUIRE(!unknown.ok());
  BOOST_TEST(unknown.error().to_string() ==
             "file: the model has no tensor called l9.weight; it belongs to another model: change "
             "`model`, or give its weights");
}

}  // namespace
}  // namespace troupe::mp::test
