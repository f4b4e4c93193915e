#include <boost/test/unit_test.hpp>

#include <chrono>

#include "scenario.hpp"

namespace troupe::mp::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(an_exception_in_a_layer_names_layer_stage_and_micro_batch) {
  for (const double backward : {0, 1}) {
    auto scenario = cut_at({0, 2, 4}, 3);
    scenario.special_layer = 3;
    scenario.special_attributes = {
        {"fail_at_step", 2}, {"fail_at_micro_batch", 1}, {"fail_in_backward", backward}};
    Running running(scenario);
    BOOST_TEST(running.pipeline().train_step().ok());
    const auto failed = running.pipeline().train_step();
    BOOST_REQUIRE(!failed.ok());
    const auto text = failed.error().to_string();
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(contains(text, "layer l3"));
      BOOST_TEST(contains(text, "stage 1"));
      BOOST_TEST(contains(text, "step 2"));
      BOOST_TEST(contains(text, "micro-batch 1"));
      BOOST_TEST((failed.error().code == ErrorCode::internal));
    }
    const auto later = running.pipeline().train_step();
    BOOST_REQUIRE(!later.ok());
    BOOST_TEST(later.error().to_string() == text);
  }
}

BOOST_AUTO_TEST_CASE(a_killed_node_ends_the_step_with_its_name_stage_and_step) {
  for (const std::size_t events : {0, 5, 20, 40, 80, 120}) {
    auto scenario = cut_at({0, 3}, 2);
    scenario.simulation.seed = 11 + events;
    Running running(scenario);
    BOOST_TEST(running.pipeline().train_step().ok());
    running.session().before_wait = [&](std::size_t) {
      for (std::size_t i = 0; i < events; ++i) running.cluster().step();
      running.cluster().kill("b");
    };
    const auto failed = running.pipeline().train_step();
    running.session().before_wait = nullptr;
    BOOST_REQUIRE(!failed.ok());
    BOOST_TEST_CONTEXT("after " << events << " events: " << failed.error().to_string()) {
      BOOST_TEST((failed.error().code == ErrorCode::cluster));
      BOOST_TEST(failed.error().where == "node b, stage 1, step 2");
    }
    BOOST_TEST(!running.pipeline().export_model().ok());
  }
}

BOOST_AUTO_TEST_CASE(a_frozen_node_is_noticed_within_the_heartbeat_timeout) {
  auto scenario = cut_at({0, 3}, 2);
  scenario.simulation.heartbeat.set_interval_seconds(0.5);
  scenario.simulation.heartbeat.set_timeout_seconds(2);
  Running running(scenario);
  running.session().before_wait = [&](std::size_t) {
    running.cluster().freeze("b");
    running.cluster().advance(std::chrono::seconds(4));
  };
  const auto failed = running.pipeline().train_step();
  BOOST_REQUIRE(!failed.ok());
  BOOST_TEST(failed.error().where == "node b, stage 1, step 1");
}

BOOST_AUTO_TEST_CASE(all_stages_of_a_lost_node_are_named) {
  auto scenario = cut_at({0, 2, 4}, 2);
  Running running(scenario);
  running.session().before_wait = [&](std::size_t) { running.cluster().kill("a"); };
  const auto failed = running.pipeline().train_step();
  BOOST_REQUIRE(!failed.ok());
  BOOST_TEST(failed.error().where == "node a, stage 0, stage 2, step 1");
}

}  // namespace
}  // namespace troupe::mp::test
