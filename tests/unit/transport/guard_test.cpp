#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "transport/observers.hpp"
#include "troupe/guard.hpp"
#include "troupe/messages.hpp"

namespace troupe {
namespace {

struct TestingConfig : caf::actor_system_config {
  TestingConfig() { set("scheduler.policy", caf::atom("testing")); }
};

struct Fixture {
  ~Fixture() {
    system.await_actors_before_shutdown(false);
    for (const auto& actor : actors) caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }
  void run() {
    while (scheduler.try_run_once()) {
    }
  }
  template <class Behavior>
  caf::actor spawn(Behavior behavior) {
    actors.push_back(system.spawn(behavior));
    run();
    return actors.back();
  }

  TestingConfig config;
  caf::actor_system system{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::vector<caf::actor> actors;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(actor_manners, Fixture)

BOOST_AUTO_TEST_CASE(an_exceptions_text_is_the_reason_of_the_end) {
  std::string reason;
  const auto thrower = spawn([](caf::event_based_actor* self) {
    guard(*self);
    return caf::behavior{[](int) { throw std::runtime_error("the disk is on fire"); }};
  });
  spawn([&](caf::event_based_actor* self) {
    self->monitor(thrower);
    self->set_down_handler([&](const caf::down_msg& down) { reason = system.render(down.reason); });
    return caf::behavior{[](int) {}};
  });
  caf::anon_send(thrower, 1);
  run();
  BOOST_TEST(reason.find("the disk is on fire") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_unexpected_message_is_dropped_and_an_unexpected_request_fails) {
  int known = 0;
  const auto guarded = spawn([&](caf::event_based_actor* self) {
    guard(*self);
    return caf::behavior{[&](int) { ++known; }};
  });
  caf::anon_send(guarded, std::string("what is this"));
  caf::scoped_actor self(system);
  auto request = self->request(guarded, caf::infinite, std::string("and this"));
  caf::anon_send(guarded, 1);
  run();
  bool failed = false;
  request.receive([](int) {}, [&](const caf::error&) { failed = true; });
  BOOST_TEST(failed);
  BOOST_TEST(known == 1);
}

BOOST_AUTO_TEST_CASE(observers_that_ended_are_forgotten) {
  Observers observers;
  std::size_t seen = 0;
  const auto keeper = spawn([&](caf::event_based_actor* self) {
    self->set_down_handler([&](const caf::down_msg& down) { observers.forget(down.source); });
    return caf::behavior{
        [&, self](const caf::actor& observer) { observers.add(*self, observer); },
        [&, self](int) { observers.publish(*self, caf::make_message(Interrupted{})); }};
  });
  const auto observer = [&](caf::event_based_actor*) {
    return caf::behavior{[&](Interrupted) { ++seen; }};
  };
  const auto first = spawn(observer);
  caf::anon_send(keeper, first);
  caf::anon_send(keeper, first);
  caf::anon_send(keeper, 1);
  run();
  BOOST_TEST(observers.size() == 1u);
  BOOST_TEST(seen == 1u);
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  run();
  BOOST_TEST(observers.size() == 0u);
  // One that comes late learns what has happened, as far as it is kept.
  for (std::size_t i = 0; i < 2 * Observers::max_history; ++i) caf::anon_send(keeper, 1);
  caf::anon_send(keeper, spawn(observer));
  run();
  BOOST_TEST(seen == 1u + Observers::max_history);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
