// The part of a stage's protocol that exchanges tied weights.
#include "core/stage_machine.hpp"

#include <string>

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::mp;

namespace {

constexpr auto train = v1::Key::KIND_TRAIN;

/// The last stage of a pipeline: nobody sends it gradients.
StageMachine machine_with(std::size_t tied_gradients, std::size_t tied_values) {
  StageMachine::Shape shape;
  shape.schedule = v1::SCHEDULE_ONE_F_ONE_B;
  shape.inbound = 1;
  shape.tied_gradients = tied_gradients;
  shape.publishes = tied_gradients != 0;
  shape.tied_values = tied_values;
  return StageMachine(shape);
}

std::string next(StageMachine& machine) {
  const auto action = machine.next();
  if (!action) return "-";
  switch (action->operation) {
    case StageOperation::forward: return "forward";
    case StageOperation::backward: return "backward";
    case StageOperation::collect: return "collect";
    case StageOperation::summarise: return "summarise";
    case StageOperation::update: return "update";
    case StageOperation::publish: return "publish";
    case StageOperation::install: return "install";
    case StageOperation::state: return "state";
  }
  return "?";
}

void expect(StageMachine& machine, const std::string& operation) {
  BOOST_REQUIRE_EQUAL(next(machine), operation);
  machine.operation_done();
}

/// Brings a step of one micro-batch to the end of its backward.
void compute(StageMachine& machine, std::uint64_t step) {
  BOOST_REQUIRE(machine.value_arrived({train, step, 0}, 0, 1, step).ok());
  expect(machine, "forward");
  expect(machine, "backward");
}

void check_error(const Result<void>& result, const std::string& text) {
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST(result.error().to_string().find(text) != std::string::npos,
             result.error().to_string() << " does not contain: " << text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_owner_waits_for_all_gradients_and_publishes_after_the_update) {
  auto machine = machine_with(2, 0);
  compute(machine, 1);
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 1).ok());
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 0).ok());
  expect(machine, "collect");
  expect(machine, "summarise");
  BOOST_TEST(next(machine) == "-");
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  expect(machine, "update");
  BOOST_TEST(!machine.step_finished(1));
  expect(machine, "publish");
  BOOST_TEST(machine.step_finished(1));
}

BOOST_AUTO_TEST_CASE(a_copy_commits_once_all_values_are_in_place) {
  auto machine = machine_with(0, 2);
  compute(machine, 1);
  expect(machine, "summarise");
  // The owner may have the decision before this stage.
  BOOST_REQUIRE(machine.tied_value_arrived(1, 1).ok());
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  BOOST_REQUIRE_EQUAL(next(machine), "update");
  BOOST_REQUIRE(machine.value_arrived({train, 2, 0}, 0, 1, 2).ok());
  machine.operation_done();
  BOOST_TEST(next(machine) == "-");  // the next step needs the new values
  BOOST_REQUIRE(machine.tied_value_arrived(1, 0).ok());
  BOOST_TEST(!machine.step_finished(1));
  expect(machine, "install");
  BOOST_TEST(machine.step_finished(1));
  BOOST_TEST(next(machine) == "forward");
}

BOOST_AUTO_TEST_CASE(a_stage_that_owns_one_weight_and_copies_another_publishes_first) {
  auto machine = machine_with(1, 1);
  compute(machine, 1);
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 0).ok());
  expect(machine, "collect");
  expect(machine, "summarise");
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  BOOST_REQUIRE(machine.tied_value_arrived(1, 0).ok());
  expect(machine, "update");
  expect(machine, "publish");
  expect(machine, "install");
  BOOST_TEST(machine.step_finished(1));
}

BOOST_AUTO_TEST_CASE(gradients_may_come_before_the_step_has_begun_here) {
  auto machine = machine_with(1, 0);
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 0).ok());
  BOOST_TEST(next(machine) == "-");
  compute(machine, 1);
  expect(machine, "collect");
}

BOOST_AUTO_TEST_CASE(accumulated_steps_collect_each_time_and_exchange_values_once) {
  auto machine = machine_with(1, 1);
  for (const std::uint64_t step : {1, 2}) {
    compute(machine, step);
    BOOST_REQUIRE(machine.tied_gradient_arrived(step, 0).ok());
    expect(machine, "collect");
    expect(machine, "summarise");
    BOOST_REQUIRE(machine.decision_arrived(step, step == 1).ok());
  }
  BOOST_TEST(machine.step_finished(1));
  expect(machine, "update");
  expect(machine, "publish");
  BOOST_REQUIRE(machine.tied_value_arrived(2, 0).ok());
  expect(machine, "install");
  BOOST_TEST(machine.step_finished(2));
}

BOOST_AUTO_TEST_CASE(a_skipped_step_exchanges_no_values) {
  auto machine = machine_with(1, 1);
  compute(machine, 1);
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 0).ok());
  expect(machine, "collect");
  expect(machine, "summarise");
  BOOST_REQUIRE(machine.decision_arrived(1, false, true).ok());
  expect(machine, "update");
  BOOST_TEST(machine.step_finished(1));
}

BOOST_AUTO_TEST_CASE(what_is_not_awaited_is_an_error_naming_the_step) {
  auto machine = machine_with(1, 1);
  check_error(machine.tied_value_arrived(1, 0), "train step 1: a tied value that this stage does");
  compute(machine, 1);
  check_error(machine.tied_value_arrived(1, 0), "tied value");  // before this stage's report
  check_error(machine.tied_gradient_arrived(1, 1), "train step 1: a tied gradient");
  BOOST_REQUIRE(machine.tied_gradient_arrived(1, 0).ok());
  check_error(machine.tied_gradient_arrived(1, 0), "tied gradient");
  expect(machine, "collect");
  check_error(machine.tied_gradient_arrived(1, 0), "tied gradient");
  expect(machine, "summarise");
  check_error(machine.tied_value_arrived(1, 1), "tied value");
  BOOST_REQUIRE(machine.tied_value_arrived(1, 0).ok());
  check_error(machine.tied_value_arrived(1, 0), "tied value");
  BOOST_REQUIRE(machine.decision_arrived(1, false).ok());
  expect(machine, "update");
  expect(machine, "publish");
  expect(machine, "install");
  check_error(machine.tied_gradient_arrived(1, 0), "tied gradient");
}
