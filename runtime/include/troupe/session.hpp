#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/message.h>
#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "troupe/api.hpp"
#include "troupe/console.hpp"
#include "troupe/mailer.hpp"
#include "troupe/plugin.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/spawn.hpp"

namespace troupe {

/// How a session is opened; what `troupe run` takes from its command line.
struct SessionOptions {
  std::filesystem::path out_directory;  ///< empty: `runs/<job name>`; created when first needed
  std::filesystem::path worker_binary;  ///< the `troupe` binary that workers are forked from;
                                        ///< empty: TROUPE_BINARY, then this executable
  std::vector<std::filesystem::path> plugin_directories;  ///< empty: beside the binary
  bool json = false;  ///< machine-readable lines on stdout, no progress bar
};

/// A connected cluster for one job, seen from the driver: every node of the job has a worker
/// process, all are connected to each other and to the driver, and the watcher runs. Destroying
/// the session drains the workers, within a deadline, and leaves no process behind.
class TROUPE_API JobSession {
 public:
  /// Starts workers for nodes without an address, asks the launchers of the others for one each,
  /// connects everything. `environment` is asked once a node. Blocks; at most the job's
  /// `connect_timeout`.
  static Result<std::unique_ptr<JobSession>> open(
      const runtime::v1::Job& job, const SessionOptions& options,
      const std::function<Result<WorkerRequirements>(const std::string& node)>& requirements);

  virtual ~JobSession();

  virtual const runtime::v1::Job& job() const = 0;
  virtual const SessionOptions& options() const = 0;
  virtual caf::actor_system& system() = 0;
  virtual ExecutionPolicy policy() const = 0;
  /// The driver node's own mailer; local actors are bound through it.
  virtual const Mailer& mailer() const = 0;

  /// What each node said of itself in its hello, in the order of the job file.
  virtual const std::vector<runtime::v1::NodeInfo>& nodes() const = 0;

  /// Spawns an actor on a node by the name of its factory and binds it there. Blocks until the
  /// node has answered or `timeout` is over; an error of the factory comes back as it is.
  virtual Result<void> spawn(const ActorAddress& address, const std::string& factory,
                             const google::protobuf::Message& config,
                             std::chrono::milliseconds timeout = std::chrono::seconds(60)) = 0;

  /// `observer` gets NodeDown, Interrupted and RuntimeFailure from now on, also those that have
  /// already happened.
  virtual void subscribe(const caf::actor& observer) = 0;

  /// The output directory, created on the first call.
  virtual Result<std::filesystem::path> out_directory() = 0;

  virtual Console& console() = 0;

  /// Appends one JSON object (a line without line break) to events.jsonl.
  virtual void record_event(const std::string& json) = 0;

  /// To be called before blocking on an actor's answer. A session whose actors have no threads of
  /// their own (a simulation) runs everything that can run and returns true: what has not been
  /// answered then never will be. Others return false at once.
  virtual bool run_pending() { return false; }
};

}  // namespace troupe
