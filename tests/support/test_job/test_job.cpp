// A plugin for tests of processes: its job sends parcels from the driver through an echo actor on
// each node of the job and back, then waits, crashes or fails as the job file says.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>

#include "troupe/files.hpp"
#include "troupe/messages.hpp"
#include "troupe/plugin.hpp"
#include "troupe/session.hpp"
#include "troupe/test_job/v1/test_job.pb.h"

namespace troupe::test_job {
namespace {

constexpr const char* driver_actor = "test";
constexpr const char* echo_actor = "echo";
constexpr const char* result_name = "result.json";
constexpr const char* crash_header = "crash";
constexpr const char* fail_header = "fail";

caf::behavior echo(caf::event_based_actor* self, const Mailer& mailer, const v1::Echo& config) {
  return {[self, mailer, config](const Delivery& delivery) {
    if (delivery.header == crash_header) std::abort();
    if (delivery.header == fail_header) {
      self->quit(caf::sec::runtime_error);
      return;
    }
    Parcel parcel;
    parcel.to = {config.next_node(), config.next_actor()};
    parcel.from = echo_actor;
    parcel.traffic = delivery.traffic;
    parcel.unit = delivery.unit;
    parcel.header = delivery.header + " " + mailer.node();
    parcel.payload = delivery.payload;
    mailer.send(std::move(parcel));
  }};
}

Result<caf::actor> make_echo(ActorContext& context, const google::protobuf::Any& any) {
  v1::Echo config;
  if (!any.UnpackTo(&config))
    return bad_input(to_string(context.self), "not an Echo: " + any.type_url());
  if (config.refuse()) return bad_input(to_string(context.self), "refuses to exist");
  return context.system.spawn(echo, context.mailer, config);
}

class Runner final : public JobRunner {
 public:
  Runner(runtime::v1::Job job, v1::TestJob config)
      : job_(std::move(job)), config_(std::move(config)) {}

  Result<std::string> check() override {
    if (config_.ending() == v1::ENDING_NEVER_CHECKED) {
      std::puts("checking");
      std::fflush(stdout);
      for (;;) pause();
    }
    return fmt::format("{} rounds over {} nodes", config_.rounds(), job_.nodes_size());
  }

  Result<WorkerRequirements> requirements(const std::string&) override {
    return WorkerRequirements{{{"OMP_NUM_THREADS", "1"}}};
  }

  Result<void> run(JobSession& session) override {
    caf::scoped_actor self(session.system());
    session.subscribe(caf::actor_cast<caf::actor>(self));
    session.mailer().bind(driver_actor, caf::actor_cast<caf::actor>(self));
    auto outcome = run_with(self, session);
    session.mailer().unbind(driver_actor);
    return outcome;
  }

 private:
  const std::string& target_node() const {
    return config_.node().empty() ? job_.nodes(0).name() : config_.node();
  }

  Result<void> run_with(caf::scoped_actor& self, JobSession& session) {
    TROUPE_TRY(spawn_echoes(session));
    TROUPE_ASSIGN(const auto directory, session.out_directory({{result_name}, {}}));
    for (std::uint32_t round = 0; round < config_.rounds(); ++round) {
      send(session, job_.nodes(0).name(), "driver", round);
      TROUPE_TRY(receive(self));
      session.console().progress((round + 1.0) / config_.rounds(), fmt::format("round {}", round));
    }
    session.console().line("trip:" + trip_);
    TROUPE_TRY(end(self, session));
    const std::string result = fmt::format("{{\"rounds\":{}}}", config_.rounds());
    TROUPE_TRY(write_whole_file(directory / result_name, result));
    session.console().result(result);
    return {};
  }

  Result<void> spawn_echoes(JobSession& session) {
    for (int i = 0; i < job_.nodes_size(); ++i) {
      v1::Echo config;
      const bool last = i + 1 == job_.nodes_size();
      config.set_next_node(last ? driver_node : job_.nodes(i + 1).name());
      config.set_next_actor(last ? driver_actor : echo_actor);
      config.set_refuse(config_.ending() == v1::ENDING_REFUSE &&
                        job_.nodes(i).name() == target_node());
      TROUPE_TRY(session.spawn({job_.nodes(i).name(), echo_actor}, "test_job.echo", config));
    }
    return {};
  }

  void send(JobSession& session, const std::string& node, const std::string& header,
            AdmissionUnit unit) {
    Parcel parcel;
    parcel.to = {node, echo_actor};
    parcel.from = driver_actor;
    parcel.traffic = TrafficClass::activation;
    parcel.unit = unit;
    parcel.header = header;
    parcel.payload = Blob::uninitialized(config_.payload_bytes());
    session.mailer().send(std::move(parcel));
  }

  /// Waits for the next delivery or the first failure.
  Result<void> receive(caf::scoped_actor& self) {
    std::optional<Error> failure;
    self->receive(
        [&](const Delivery& delivery) { trip_ = delivery.header; },
        [&](const NodeDown& down) { failure = cluster_error("node " + down.node, down.reason); },
        [&](const RuntimeFailure& down) { failure = down.error; },
        [&](Interrupted) {
          failure = Error{ErrorCode::interrupted, "job " + job_.name(), "interrupted", {}};
        });
    if (failure) return *failure;
    return {};
  }

  Result<void> end(caf::scoped_actor& self, JobSession& session) {
    switch (config_.ending()) {
      case v1::ENDING_WAIT: session.console().line("waiting"); return receive(self);
      case v1::ENDING_DEAF:
        session.console().line("waiting");
        for (;;) pause();
      case v1::ENDING_CRASH:
        send(session, target_node(), crash_header, config_.rounds());
        return receive(self);
      case v1::ENDING_FAIL:
        send(session, target_node(), fail_header, config_.rounds());
        return receive(self);
      default: return {};
    }
  }

  const runtime::v1::Job job_;
  const v1::TestJob config_;
  std::string trip_;
};

Result<std::unique_ptr<JobRunner>> make_runner(const runtime::v1::Job& job,
                                               std::shared_ptr<const ConfigSource>) {
  v1::TestJob config;
  if (!job.plugin().UnpackTo(&config)) return bad_input("plugin", "not a TestJob");
  return std::unique_ptr<JobRunner>(std::make_unique<Runner>(job, std::move(config)));
}

bool register_plugin(Registry& registry, std::string* error) {
  for (const auto& outcome : {registry.add_actor("test_job.echo", make_echo),
                              registry.add_job(*v1::TestJob::descriptor(), make_runner)}) {
    if (outcome) continue;
    *error = outcome.error().to_string();
    return false;
  }
  return true;
}

constexpr const char* packages[] = {"troupe.test_job.v1", nullptr};
constexpr PluginDescriptor descriptor{plugin_abi_version, "test_job", "1", packages,
                                      register_plugin};

}  // namespace
}  // namespace troupe::test_job

TROUPE_PLUGIN_ENTRY { return &troupe::test_job::descriptor; }
