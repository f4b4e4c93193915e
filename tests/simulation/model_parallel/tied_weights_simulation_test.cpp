// Tied weights over many stages, in any order of events.
#include <boost/test/unit_test.hpp>

#include <set>

#include "scenario.hpp"

namespace troupe::mp::test {
namespace {

const std::vector<std::vector<std::uint32_t>> cuts = {{0},    {0, 3},    {0, 1},
                                                      {0, 5}, {0, 2, 4}, {0, 1, 2, 3, 4, 5}};

/// l2 and l5 share l0's weight, l4 shares l1's: owners and copies in turn.
Scenario tied(Scenario scenario) {
  scenario.tied = {{2, 0}, {4, 1}, {5, 0}};
  return scenario;
}

std::set<std::string> names_of(const TensorMap& state) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : state) names.insert(name);
  return names;
}

BOOST_AUTO_TEST_CASE(weights_are_the_same_whatever_cut_schedule_placement_and_timing) {
  const auto reference = train(tied(Scenario()));
  const std::set<std::string> expected{"l0.weight",       "l1.weight",       "l3.weight",
                                       "l0.running_mean", "l2.running_mean", "l4.running_mean"};
  BOOST_TEST((names_of(reference.state) == expected));
  BOOST_TEST(!same_state(reference.initial, reference.state));
  std::uint64_t seed = 500;
  for (const auto& cut : cuts)
    for (const std::size_t nodes : {1, 2, 6})
      for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
        auto scenario = tied(cut_at(cut, nodes));
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

BOOST_AUTO_TEST_CASE(the_tied_model_is_another_than_the_untied) {
  const auto untied = train(Scenario());
  const auto shared = train(tied(Scenario()));
  BOOST_TEST(untied.steps[0].totals.loss != shared.steps[0].totals.loss);
  BOOST_TEST(!same_state({{"l0.weight", untied.state.at("l0.weight")}},
                         {{"l0.weight", shared.state.at("l0.weight")}}));
}

BOOST_AUTO_TEST_CASE(an_evaluation_before_the_first_step_has_the_initial_values_everywhere) {
  Running one(tied(Scenario()));
  Running six(tied(cut_at({0, 1, 2, 3, 4, 5}, 3)));
  const auto expected = value_of(one.pipeline().evaluate());
  const auto found = value_of(six.pipeline().evaluate());
  BOOST_TEST(expected.totals.loss == found.totals.loss);
  BOOST_TEST(expected.totals.correct == found.totals.correct);
}

BOOST_AUTO_TEST_CASE(evaluations_between_steps_see_the_new_values) {
  const auto losses = [](const Scenario& scenario) {
    Running running(tied(scenario));
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step) {
      value_of(running.pipeline().train_step());
      losses.push_back(value_of(running.pipeline().evaluate()).totals.loss);
    }
    return losses;
  };
  BOOST_TEST(losses(Scenario()) == losses(cut_at({0, 2, 4, 5}, 2)),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(clipping_counts_shared_weights_once) {
  auto one = tied(Scenario());
  one.clip_grad_norm = 1e-3;
  auto four = tied(cut_at({0, 2, 4, 5}, 2));
  four.clip_grad_norm = 1e-3;
  BOOST_TEST(same_state(train(one).state, train(four).state));
}

BOOST_AUTO_TEST_CASE(a_file_of_weights_sets_all_copies) {
  const auto trained = train(tied(cut_at({0, 3}, 2)));
  auto scenario = tied(cut_at({0, 1, 2, 4, 5}, 3));
  scenario.weights_seed = 99;
  Running running(scenario);
  BOOST_TEST(running.driver().load_state(trained.state, true, "file").ok());
  BOOST_TEST(same_state(value_of(running.pipeline().export_model()), trained.state));
  Running reference(tied(cut_at({0, 3}, 2)));
  BOOST_TEST(reference.driver().load_state(trained.state, true, "file").ok());
  const auto expected = value_of(reference.pipeline().evaluate()).totals.loss;
  BOOST_TEST(value_of(running.pipeline().evaluate()).totals.loss == expected);
}

BOOST_AUTO_TEST_CASE(a_frozen_owner_keeps_its_values_on_all_stages) {
  auto scenario = tied(cut_at({0, 1, 3}, 2));
  scenario.frozen_stages = {0};
  const auto outcome = train(scenario);
  BOOST_TEST(
      same_state({{"w", outcome.initial.at("l0.weight")}}, {{"w", outcome.state.at("l0.weight")}}));
  BOOST_TEST(!same_state({{"w", outcome.initial.at("l1.weight")}},
                         {{"w", outcome.state.at("l1.weight")}}));
}

BOOST_AUTO_TEST_CASE(the_smallest_budgets_are_enough) {
  const auto reference = train(tied(Scenario()));
  auto scenario = tied(cut_at({0, 1, 2, 3, 4, 5}, 3));
  scenario.simulation.limits.set_admission_budget_bytes(1);
  scenario.simulation.limits.set_chunk_budget_bytes(64);
  scenario.simulation.limits.set_chunk_bytes(8);
  BOOST_TEST(same_state(train(scenario).state, reference.state));
}

BOOST_AUTO_TEST_CASE(the_first_error_wins_while_an_owner_waits) {
  auto scenario = tied(cut_at({0, 2, 4}, 3));
  scenario.special_layer = 2;
  scenario.special_attributes = {{"fail_at_step", 2}, {"fail_in_backward", 1}};
  Running running(scenario);
  value_of(running.pipeline().train_step());
  // Stage 2 has reported and stage 0 waits for stage 1's gradient of l2.weight.
  const auto failed = running.pipeline().train_step();
  BOOST_REQUIRE(!failed.ok());
  BOOST_TEST(failed.error().to_string().find("stage 1 (node b), train step 2, micro-batch 0") !=
                 std::string::npos,
             failed.error().to_string());
  BOOST_TEST(failed.error().to_string().find("injected failure") != std::string::npos);
}

}  // namespace
}  // namespace troupe::mp::test
