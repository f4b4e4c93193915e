#include "actor/published_actor.hpp"

#include <future>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

namespace troupe {
namespace {

struct System {
  caf::actor_system_config config;
  caf::actor_system system{config};
};

/// A published actor that does nothing but end when it is told to.
class Idle : public PublishedActor {
 public:
  using PublishedActor::PublishedActor;

 protected:
  caf::behavior make_behavior() override {
    return {[this](EndActor) { quit(); }};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(published_actor)

BOOST_AUTO_TEST_CASE(the_end_is_over_when_all_observers_know) {
  System host;
  const caf::actor actor = host.system.spawn<Idle, caf::detached>();
  std::promise<void> telling, release;
  bool told = false;
  // As the broker's: one of those that are told of the end.
  actor->attach_functor([&](const caf::error&) {
    telling.set_value();
    release.get_future().wait();
    told = true;
  });
  std::thread observer([&] {
    telling.get_future().wait();
    release.set_value();
  });
  end_published_and_wait(actor);
  BOOST_TEST(told);
  observer.join();
}

BOOST_AUTO_TEST_CASE(exit_messages_are_dropped) {
  System host;
  const caf::actor actor = host.system.spawn<Idle, caf::detached>();
  for (const auto reason : {caf::exit_reason::kill, caf::exit_reason::user_shutdown})
    caf::anon_send_exit(actor, reason);
  std::promise<void> ended;
  actor->attach_functor([&](const caf::error& reason) {
    BOOST_TEST((reason == caf::exit_reason::normal));
    ended.set_value();
  });
  end_published_and_wait(actor);
  ended.get_future().wait();
}

BOOST_AUTO_TEST_CASE(one_that_has_ended_is_not_waited_for) {
  System host;
  const caf::actor actor = host.system.spawn<Idle, caf::detached>();
  end_published_and_wait(actor);
  end_published_and_wait(actor);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
