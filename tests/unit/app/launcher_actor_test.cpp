#include "app/launcher_actor.hpp"

#include <sys/stat.h>

#include <memory>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actor/control_codec.hpp"
#include "actor/published_actor.hpp"
#include "support/process.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;

/// A launcher whose workers live until their parent closes their input.
struct Fixture {
  Fixture() {
    const std::string binary = files.write("worker", "#!/bin/sh\nexec cat > /dev/null\n");
    BOOST_REQUIRE_EQUAL(chmod(binary.c_str(), 0700), 0);
    LauncherActorConfig launcher_config;
    launcher_config.info.set_name("machine");
    launcher_config.host = "127.0.0.1";
    launcher_config.binary = binary;
    launcher_config.children = children.get();
    launcher = spawn_launcher_actor(system, std::move(launcher_config));
  }
  ~Fixture() {
    end_published_and_wait(launcher);
    children.reset();
  }

  Result<v1::Response> ask(caf::scoped_actor& self, v1::Request request, const std::string& key) {
    Result<v1::Response> response = internal_error("", "no answer");
    request.set_run_key(key);
    self->request(launcher, caf::infinite, encode(request))
        .receive([&](const ControlBytes& bytes) { response = decode_response(bytes); },
                 [](const caf::error&) {});
    return response;
  }

  v1::Status status(caf::scoped_actor& self) {
    v1::Request request;
    request.mutable_get_status();
    auto response = ask(self, request, "");
    BOOST_REQUIRE(response.ok());
    return response->status();
  }

  const std::string key = "0123456789abcdef";
  test::TemporaryDirectory files;
  std::unique_ptr<ChildProcesses> children = std::make_unique<ChildProcesses>();
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::actor launcher;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_actor, Fixture)

BOOST_AUTO_TEST_CASE(a_worker_without_a_run_key_is_not_started) {
  caf::scoped_actor driver(system);
  v1::Request start;
  start.mutable_start_worker()->set_job("job");
  start.mutable_start_worker()->set_node("a");
  const auto refused = ask(driver, start, "too short");
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().what == "a run key of 9 bytes where 16 are expected");
  BOOST_TEST(status(driver).workers().empty());
}

BOOST_AUTO_TEST_CASE(a_worker_is_stopped_by_its_own_run_only) {
  caf::scoped_actor driver(system);
  v1::Request start;
  start.mutable_start_worker()->set_job("job");
  start.mutable_start_worker()->set_node("a");
  start.set_run_key(key);
  // Answered when the worker listens, which this one never does.
  driver->send(launcher, encode(start));
  const v1::Status before = status(driver);
  BOOST_REQUIRE_EQUAL(before.workers_size(), 1);
  v1::Request stop;
  stop.mutable_stop_worker()->set_pid(before.workers(0).pid());
  stop.mutable_stop_worker()->set_kill(true);
  const auto refused = ask(driver, stop, "another run's id");
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().what == "the worker belongs to another run");
  BOOST_TEST(status(driver).workers_size() == 1);
  BOOST_TEST(ask(driver, stop, key).ok());
  BOOST_TEST(status(driver).workers().empty());
}

BOOST_AUTO_TEST_CASE(exit_messages_do_not_end_a_launcher) {
  caf::scoped_actor stranger(system);
  stranger->send_exit(launcher, caf::exit_reason::kill);
  caf::anon_send_exit(launcher, caf::exit_reason::user_shutdown);
  BOOST_TEST(status(stranger).name() == "machine");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
