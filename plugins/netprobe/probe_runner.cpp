#include "netprobe/probe_runner.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include "netprobe/core/report.hpp"
#include "netprobe/probe_actor.hpp"
#include "troupe/files.hpp"
#include "troupe/messages.hpp"
#include "troupe/netprobe/v1/netprobe.pb.h"
#include "troupe/session.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe::netprobe {

namespace {

constexpr const char* driver_actor = "netprobe";
constexpr const char* report_name = "netprobe.json";
constexpr std::uint64_t default_sizes[] = {4 << 10, 64 << 10, 1 << 20, 8 << 20};
constexpr std::uint32_t default_rounds = 5;
constexpr std::uint32_t default_round_trips = 100;

/// The job with its defaults written out.
v1::Measure measure_plan(const v1::ProbeJob& config) {
  v1::Measure plan;
  *plan.mutable_sizes() = config.sizes();
  if (plan.sizes().empty())
    plan.mutable_sizes()->Add(std::begin(default_sizes), std::end(default_sizes));
  plan.set_rounds(config.rounds() == 0 ? default_rounds : config.rounds());
  plan.set_round_trips(config.round_trips() == 0 ? default_round_trips : config.round_trips());
  return plan;
}

/// The driver's end of the conversation with the probes, for as long as a job runs.
class Probing {
 public:
  Probing(JobSession& session, v1::Measure plan)
      : session_(session), plan_(std::move(plan)), self_(session.system()) {
    session_.subscribe(caf::actor_cast<caf::actor>(self_));
    session_.mailer().bind(driver_actor, caf::actor_cast<caf::actor>(self_));
  }
  Probing(const Probing&) = delete;
  Probing& operator=(const Probing&) = delete;
  ~Probing() { session_.mailer().unbind(driver_actor); }

  Result<void> start() {
    for (const auto& node : session_.job().nodes())
      TROUPE_TRY(session_.spawn({node.name(), probe_actor}, probe_factory, v1::Probe()));
    return {};
  }

  Result<runtime::v1::LinkProfile> run() {
    const auto& nodes = session_.job().nodes();
    const int pairs = nodes.size() * (nodes.size() - 1);
    runtime::v1::LinkProfile profile;
    for (const auto& from : nodes)
      for (const auto& to : nodes) {
        if (from.name() == to.name()) continue;
        session_.console().progress(static_cast<double>(profile.links_size()) / pairs,
                                    from.name() + " -> " + to.name());
        TROUPE_ASSIGN(*profile.add_links(), measure(from.name(), to.name()));
      }
    session_.console().progress(1, fmt::format("{} links measured", pairs));
    return profile;
  }

 private:
  Result<runtime::v1::LinkProfile::Link> measure(const std::string& from, const std::string& to) {
    v1::Message message;
    *message.mutable_measure() = plan_;
    message.mutable_measure()->set_to(to);
    Parcel parcel;
    parcel.to = {from, probe_actor};
    parcel.from = driver_actor;
    parcel.header = message.SerializeAsString();
    session_.mailer().send(std::move(parcel));
    return receive_report();
  }

  /// Waits for the report or the first failure, whichever comes first.
  Result<runtime::v1::LinkProfile::Link> receive_report() {
    std::optional<Result<runtime::v1::LinkProfile::Link>> outcome;
    self_->receive(
        [&](const Delivery& delivery) {
          const auto message = parse_strictly<v1::Message>(delivery.header);
          if (message && message->has_report())
            outcome = message->report();
          else
            outcome = internal_error(to_string(delivery.from), "an unexpected message");
        },
        [&](const NodeDown& down) { outcome = cluster_error("node " + down.node, down.reason); },
        [&](const RuntimeFailure& failure) { outcome = failure.error; },
        [&](const Interrupted&) {
          outcome =
              Error{ErrorCode::interrupted, "job " + session_.job().name(), "interrupted", {}};
        });
    return std::move(*outcome);
  }

  JobSession& session_;
  v1::Measure plan_;
  caf::scoped_actor self_;
};

class ProbeRunner final : public JobRunner {
 public:
  ProbeRunner(const runtime::v1::Job& job, std::shared_ptr<const ConfigSource> source,
              const v1::ProbeJob& config)
      : nodes_(job.nodes_size()), source_(std::move(source)), plan_(measure_plan(config)) {}

  Result<std::string> check() override {
    if (nodes_ < 2)
      return bad_input(source_ ? source_->locate_plugin_field("") : "nodes",
                       "one node has no links to measure", "write at least two nodes");
    std::string sizes;
    for (const auto size : plan_.sizes()) sizes += (sizes.empty() ? "" : ", ") + format_size(size);
    return fmt::format("{} links between {} nodes: {} round trips, {} messages of each of {}",
                       nodes_ * (nodes_ - 1), nodes_, plan_.round_trips(), plan_.rounds(), sizes);
  }

  Result<WorkerRequirements> requirements(const std::string&) override {
    return WorkerRequirements{};
  }

  Result<void> run(JobSession& session) override {
    if (auto checked = check(); !checked) return std::move(checked).error();
    Probing probing(session, plan_);
    TROUPE_TRY(probing.start());
    TROUPE_ASSIGN(const auto directory, session.out_directory({{report_name}, {}}));
    TROUPE_ASSIGN(const auto profile, probing.run());
    for (const auto& line : format_table(profile)) session.console().line(line);
    const std::string json = format_json(profile);
    TROUPE_TRY(write_whole_file(directory / report_name, json + "\n"));
    session.console().result(json);
    return {};
  }

 private:
  int nodes_;
  std::shared_ptr<const ConfigSource> source_;
  v1::Measure plan_;
};

}  // namespace

Result<std::unique_ptr<JobRunner>> make_probe_runner(const runtime::v1::Job& job,
                                                     std::shared_ptr<const ConfigSource> source) {
  v1::ProbeJob config;
  if (!job.plugin().UnpackTo(&config)) return internal_error("plugin", "not a ProbeJob");
  return std::unique_ptr<JobRunner>(std::make_unique<ProbeRunner>(job, std::move(source), config));
}

}  // namespace troupe::netprobe
