#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/simulation.hpp"
#include "troupe/session.hpp"

namespace troupe::testing {

/// A console that remembers.
class RecordingConsole : public Console {
 public:
  void line(const std::string& text) override { lines.push_back(text); }
  void progress(double fraction, const std::string& text) override { progresses.push_back(text); }
  void result(const std::string& json) override { results.push_back(json); }

  std::vector<std::string> lines;
  std::vector<std::string> progresses;
  std::vector<std::string> results;
};

/// A session whose nodes, the driver's too, are simulated in one actor system. Blocking calls of
/// the code under test run the simulation until nothing can happen any more.
class LocalSession : public JobSession {
 public:
  using Factories = std::map<std::string, ActorFactory>;

  /// `factories` are known on every node. Files go to a directory of the session's own, removed
  /// with it.
  LocalSession(runtime::v1::Job job, Factories factories, SimulationOptions options = {});
  ~LocalSession() override;

  SimulatedCluster& cluster() { return cluster_; }
  /// The actor that `spawn` made.
  const caf::actor& actor(const ActorAddress& address) const { return actors_.at(address); }
  RecordingConsole& recorded() { return console_; }
  std::vector<std::string>& events() { return events_; }

  /// Runs before each wait of the code under test, with the number of the wait, from 0: the place
  /// for misfortune. What it leaves undone is run afterwards.
  std::function<void(std::size_t wait)> before_wait;

  /// As if the user had pressed Ctrl-C.
  void interrupt();

  const runtime::v1::Job& job() const override { return job_; }
  const SessionOptions& options() const override { return options_; }
  caf::actor_system& system() override { return cluster_.system(); }
  ExecutionPolicy policy() const override { return SimulatedCluster::policy(); }
  const Mailer& mailer() const override { return cluster_.mailer(driver_node); }
  const std::vector<runtime::v1::NodeInfo>& nodes() const override { return nodes_; }
  Result<void> spawn(const ActorAddress& address, const std::string& factory,
                     const google::protobuf::Message& config,
                     std::chrono::milliseconds timeout) override;
  void subscribe(const caf::actor& observer) override;
  Result<std::filesystem::path> out_directory(const OutputFiles& files) override;
  Console& console() override { return console_; }
  void record_event(const std::string& json) override { events_.push_back(json); }
  bool run_pending() override;

 private:
  runtime::v1::Job job_;
  Factories factories_;
  SessionOptions options_;
  std::vector<runtime::v1::NodeInfo> nodes_;
  RecordingConsole console_;
  std::vector<std::string> events_;
  std::vector<caf::actor> observers_;
  std::map<ActorAddress, caf::actor> actors_;
  std::filesystem::path directory_;
  std::size_t waits_ = 0;
  SimulatedCluster cluster_;
};

/// A job with nodes of these names and no plugin message.
runtime::v1::Job job_with_nodes(const std::vector<std::string>& nodes);

}  // namespace troupe::testing
