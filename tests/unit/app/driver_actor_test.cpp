#include "app/driver_actor.hpp"

#include <future>
#include <string>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actor/control_codec.hpp"
#include "transport/endpoint.hpp"

namespace troupe {
namespace {

struct Fixture {
  Fixture() {
    endpoint = system.spawn(
        [](caf::event_based_actor*) { return caf::behavior{[](const Subscribe&) {}}; });
    DriverActorConfig settings;
    settings.endpoint = endpoint;
    settings.run_key = key;
    settings.on_failure = [this](const Error& error, auto&) { first_failure.set_value(error); };
    driver = spawn_driver_actor(system, std::move(settings));
  }
  ~Fixture() {
    caf::anon_send_exit(driver, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(endpoint, caf::exit_reason::user_shutdown);
  }

  void report(const std::string& what, const RunKey& with) {
    runtime::v1::Request request;
    request.mutable_report()->mutable_failure()->set_what(what);
    request.set_run_key(with.bytes());
    caf::anon_send(driver, encode(request));
  }

  const RunKey key = *RunKey::from_bytes("0123456789abcdef");
  caf::actor_system_config config;
  caf::actor_system system{config};
  std::promise<Error> first_failure;  ///< a second one would throw
  caf::actor endpoint;
  caf::actor driver;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(driver_actor, Fixture)

BOOST_AUTO_TEST_CASE(the_end_of_its_endpoint_is_a_failure) {
  caf::anon_send_exit(endpoint, caf::exit_reason::out_of_workers);
  const Error error = first_failure.get_future().get();
  BOOST_TEST(error.where == "driver");
  BOOST_TEST(error.what.find("its endpoint died: ") == 0u);
}

BOOST_AUTO_TEST_CASE(reports_of_strangers_are_not_listened_to) {
  report("forged", RunKey());
  report("true", key);
  BOOST_TEST(first_failure.get_future().get().what == "true");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
