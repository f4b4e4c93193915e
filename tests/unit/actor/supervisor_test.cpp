#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include "actor/supervisor.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;

struct TestingConfig : caf::actor_system_config {
  TestingConfig() { set("scheduler.policy", caf::atom("testing")); }
};

struct Fixture {
  Fixture() : scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {
    listener = system.spawn([this](caf::event_based_actor*) {
      return caf::behavior{
          [this](const ChildStarted& started) { children.push_back(started.child); },
          [this](const ChildEnded& end) { ended.push_back(end); },
      };
    });
    config.name = "child";
    config.listener = listener;
    config.restarts = {2, std::chrono::seconds(60), milliseconds(100), std::chrono::seconds(1)};
    config.start = [this]() -> Result<caf::actor> {
      if (refuse) return internal_error("child", "cannot start");
      return system.spawn([](caf::event_based_actor*) { return caf::behavior{[](int) {}}; });
    };
  }

  ~Fixture() {
    system.await_actors_before_shutdown(false);
    for (const auto& child : children) caf::anon_send_exit(child, caf::exit_reason::kill);
    caf::anon_send_exit(listener, caf::exit_reason::kill);
    caf::anon_send_exit(supervisor, caf::exit_reason::kill);
    run();
  }

  void start() {
    supervisor = spawn_supervisor(system, config);
    run();
  }
  void run() {
    while (scheduler.try_run_once()) {
    }
  }
  void advance(milliseconds time) {
    scheduler.clock().advance_time(time);
    run();
  }
  void fail_child() {
    caf::anon_send_exit(children.back(), caf::exit_reason::unhandled_exception);
    run();
  }

  TestingConfig system_config;
  caf::actor_system system{system_config};
  caf::scheduler::test_coordinator& scheduler;
  SupervisorConfig config;
  bool refuse = false;
  caf::actor listener;
  caf::actor supervisor;
  std::vector<caf::actor> children;
  std::vector<ChildEnded> ended;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(supervisor, Fixture)

BOOST_AUTO_TEST_CASE(a_failed_child_is_started_again_after_the_delay) {
  start();
  BOOST_REQUIRE_EQUAL(children.size(), 1u);
  fail_child();
  advance(milliseconds(99));
  BOOST_TEST(children.size() == 1u);
  advance(milliseconds(1));
  BOOST_TEST(children.size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_final_failure_is_reported_once_the_budget_is_used_up) {
  start();
  for (int i = 0; i < 2; ++i) {
    fail_child();
    advance(std::chrono::seconds(1));
  }
  BOOST_TEST(ended.empty());
  fail_child();
  advance(std::chrono::seconds(10));
  BOOST_TEST(children.size() == 3u);
  BOOST_REQUIRE_EQUAL(ended.size(), 1u);
  BOOST_TEST(ended[0].failed);
  BOOST_TEST(ended[0].error.what.find("after 2 restarts") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_child_that_ends_in_order_is_not_started_again) {
  config.start = [this]() -> Result<caf::actor> {
    return system.spawn(
        [](caf::event_based_actor* self) { return caf::behavior{[self](int) { self->quit(); }}; });
  };
  start();
  caf::anon_send(children.back(), 1);
  run();
  advance(std::chrono::seconds(5));
  BOOST_TEST(children.size() == 1u);
  BOOST_REQUIRE_EQUAL(ended.size(), 1u);
  BOOST_TEST(!ended[0].failed);
}

BOOST_AUTO_TEST_CASE(a_factory_that_fails_uses_up_the_budget) {
  refuse = true;
  start();
  advance(std::chrono::seconds(1));
  advance(std::chrono::seconds(1));
  BOOST_REQUIRE_EQUAL(ended.size(), 1u);
  BOOST_TEST(ended[0].error.what.find("cannot start") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_exits_takes_its_child_along) {
  start();
  bool down = false;
  const auto watcher = system.spawn([&](caf::event_based_actor* self) {
    self->monitor(children.back());
    self->set_down_handler([&down, self](const caf::down_msg&) {
      down = true;
      self->quit();
    });
    return caf::behavior{[](int) {}};
  });
  run();
  caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
  run();
  advance(std::chrono::seconds(5));
  BOOST_TEST(down);
  BOOST_TEST(children.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
