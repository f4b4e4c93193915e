// What a launcher does for its callers, and what it refuses them; see also launcher_actor_test.cpp.
#include <filesystem>

#include <boost/test/unit_test.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actor/control_codec.hpp"
#include "actor/published_actor.hpp"
#include "app/application.hpp"
#include "app/launcher_actor.hpp"
#include "support/process.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using namespace std::chrono_literals;
constexpr auto patience = 60s;

/// A launcher's actor whose workers are shells that never answer.
struct Launcher {
  Launcher() {
    LauncherActorConfig config;
    config.info.set_name("here");
    config.host = "127.0.0.1";
    config.binary = files.write("worker", "#!/bin/sh\nexec sleep 600\n");
    std::filesystem::permissions(config.binary, std::filesystem::perms::owner_all);
    config.drain = 10s;
    config.children = &children;
    actor = spawn_launcher_actor(application.system(), config);
  }
  ~Launcher() {
    end_published_and_wait(actor);
    children.kill_all();
    BOOST_TEST(children.wait_all(patience));
  }

  Result<v1::Response> ask(caf::scoped_actor& self, const v1::Request& request) {
    Result<v1::Response> response = internal_error("test", "no answer");
    self->request(actor, patience, encode(request))
        .receive([&](const ControlBytes& bytes) { response = decode_response(bytes); },
                 [&](const caf::error&) {});
    return response;
  }

  /// A request whose answer is not waited for.
  void send(caf::scoped_actor& self, const v1::Request& request) {
    self->send(actor, encode(request));
  }

  /// The process of the one worker there is.
  std::int64_t worker(caf::scoped_actor& self) {
    v1::Request request;
    request.mutable_get_status();
    const auto response = ask(self, request);
    BOOST_REQUIRE(response.ok());
    BOOST_REQUIRE(response->status().workers_size() == 1);
    return response->status().workers(0).pid();
  }

  test::TemporaryDirectory files;
  ChildProcesses children;
  Application application;
  caf::actor actor;
};

v1::Request start_request(const std::string& job) {
  v1::Request request;
  request.set_run_key("0123456789abcdef");
  request.mutable_start_worker()->set_job(job);
  request.mutable_start_worker()->set_node("a");
  return request;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(launcher)

BOOST_AUTO_TEST_CASE(an_owner_that_ends_takes_its_workers_along) {
  Launcher launcher;
  caf::scoped_actor other(launcher.application.system());
  std::int64_t pid = 0;
  {
    caf::scoped_actor owner(launcher.application.system());
    launcher.send(owner, start_request("job"));
    pid = launcher.worker(owner);
  }
  BOOST_TEST(test::all_gone({static_cast<pid_t>(pid)}));
}

BOOST_AUTO_TEST_CASE(requests_that_no_job_file_could_make_are_refused) {
  Launcher launcher;
  caf::scoped_actor self(launcher.application.system());
  std::vector<v1::Request> bad(6, start_request("job"));
  bad[0].mutable_start_worker()->set_job(std::string(1 << 20, 'x'));
  bad[1].mutable_start_worker()->set_node("");
  bad[2].mutable_start_worker()->mutable_heartbeat()->set_timeout_seconds(-1);
  bad[3].mutable_start_worker()->mutable_links()->set_chunk_bytes(1);
  (*bad[4].mutable_start_worker()->mutable_environment())["LD_PRELOAD"] = "x";
  // Every field is what it may be, and still the whole is more than a pipe holds.
  for (int i = 0; i < 1000; ++i)
    bad[5].mutable_start_worker()->add_plugins(std::string(100, 'p') + std::to_string(i));
  for (const auto& request : bad) {
    const auto refused = launcher.ask(self, request);
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST(exit_code(refused.error().code) == 2, refused.error().to_string());
  }
  v1::Request ping;
  ping.mutable_ping();
  BOOST_TEST(launcher.ask(self, ping).ok());
}

BOOST_AUTO_TEST_CASE(a_draining_launcher_tells_the_owners_and_starts_nothing_more) {
  Launcher launcher;
  caf::scoped_actor owner(launcher.application.system());
  launcher.send(owner, start_request("job"));
  const auto pid = launcher.worker(owner);
  owner->send(launcher.actor, LauncherDrain{});
  std::string draining;
  owner->receive(
      [&](const ControlBytes& bytes) {
        const auto request = decode_request(bytes);
        if (request) draining = request->report().draining_node();
      },
      caf::after(patience) >> [] {});
  BOOST_TEST(draining == "a");
  BOOST_TEST(launcher.worker(owner) == pid);
  BOOST_TEST(!launcher.ask(owner, start_request("another")).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
