#include <boost/test/unit_test.hpp>

#include "scenario.hpp"

namespace troupe::mp::test {
namespace {

BOOST_AUTO_TEST_CASE(an_evaluation_covers_every_sample_and_changes_nothing) {
  Running running(cut_at({0, 2, 4}, 3));
  value_of(running.pipeline().train_step());
  const auto before = value_of(running.pipeline().export_model());
  const auto first = value_of(running.pipeline().evaluate());
  const auto second = value_of(running.pipeline().evaluate());
  BOOST_TEST(first.totals.samples == samples_in_epoch);
  BOOST_TEST(first.totals.loss == second.totals.loss);
  BOOST_TEST(first.totals.correct == second.totals.correct);
  BOOST_TEST(same_state(value_of(running.pipeline().export_model()), before));
}

BOOST_AUTO_TEST_CASE(an_evaluation_counts_what_the_loss_counts) {
  auto scenario = cut_at({0, 2, 4}, 3);
  scenario.evaluation_batch_size = 1;  // some micro-batches have nothing that counts
  scenario.ignore_index = 4;
  Running running(scenario);
  const auto totals = value_of(running.pipeline().evaluate()).totals;
  BOOST_TEST(totals.samples == samples_in_epoch);
  BOOST_TEST(totals.counted == samples_in_epoch - 2);
}

BOOST_AUTO_TEST_CASE(an_evaluation_between_steps_does_not_disturb_training) {
  auto scenario = cut_at({0, 3}, 2);
  const auto undisturbed = train(scenario);
  Running running(scenario);
  for (std::uint64_t i = 0; i < scenario.steps; ++i) {
    value_of(running.pipeline().train_step());
    value_of(running.pipeline().evaluate());
  }
  BOOST_TEST(same_state(value_of(running.pipeline().export_model()), undisturbed.state));
}

BOOST_AUTO_TEST_CASE(an_evaluation_of_many_batches_is_cut_into_requests) {
  auto scenario = cut_at({0, 3}, 2);
  scenario.evaluation_batch_size = 1;
  Running one_by_one(scenario);
  BOOST_TEST(value_of(one_by_one.pipeline().evaluate()).totals.samples == samples_in_epoch);
  scenario.stage_nodes = {"a"};
  scenario.first_layers = {0};
  Running single(scenario);
  BOOST_TEST(value_of(single.pipeline().evaluate()).totals.loss ==
             value_of(one_by_one.pipeline().evaluate()).totals.loss);
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_an_evaluation_early_and_a_step_complete) {
  auto scenario = cut_at({0, 3}, 2);
  scenario.evaluation_batch_size = 1;
  Running running(scenario);
  running.session().interrupt();
  const auto step = value_of(running.pipeline().train_step());
  BOOST_TEST(step.interrupted);
  BOOST_TEST(step.totals.samples == 8u);
  const auto evaluation = value_of(running.pipeline().evaluate());
  BOOST_TEST(evaluation.interrupted);
  BOOST_TEST(evaluation.totals.samples < samples_in_epoch);
  BOOST_TEST(!value_of(running.pipeline().export_model()).empty());
}

}  // namespace
}  // namespace troupe::mp::test
