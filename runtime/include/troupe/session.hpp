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
  std::filesystem::path out_directory;  ///< empty: `runs/<job name>`
  std::filesystem::path worker_binary;  ///< the `troupe` binary that workers are forked from;
                                        ///< empty: TROUPE_BINARY, then this executable
  /// Empty: TROUPE_PLUGIN_PATH, then `../lib/troupe/plugins` beside the binary.
  std::vector<std::filesystem::path> plugin_directories;
  bool json = false;  ///< machine-readable lines on stdout, no progress bar
};

/// What a run writes into its output directory, and what it reads.
struct OutputFiles {
  std::vector<std::string> results;           ///< names of the files it may write there
  std::vector<std::filesystem::path> inputs;  ///< wherever they are: no file here is replaced
};

/// A connected cluster for one job, seen from the driver: every node of the job has a worker
/// process, all are connected to each other and to the driver, and workers and launchers are
/// watched. SIGINT, SIGTERM and SIGHUP, unless ignored, belong to the session as long as it lives:
/// the first interrupts the job, the second ends the process. Destroying the session drains the
/// workers, within a deadline, leaves no process behind and gives the signals back; it happens on
/// the thread that opened the session.
class TROUPE_API JobSession {
 public:
  /// Starts workers for nodes without an address, asks the launchers of the others for one each,
  /// connects everything. `requirements` is asked once a node. Blocks; at most the job's
  /// `connect_timeout_seconds`. Writes nothing. Errors: bad_input for a job that `troupe check`
  /// would refuse (a C++ driver's may lack `plugin`) and for an output directory that cannot be
  /// used; cluster for a node that cannot be reached.
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

  /// The output directory. The first call takes it for this run, and comes once the run can begin:
  /// what an earlier run left there, its `events.jsonl` and results (those it named, and those
  /// named in `files`), gets other names, `weights.safetensors` becomes
  /// `weights.previous.safetensors` and so on, replacing what is one run older; inputs of this run
  /// are never replaced. Until then nothing there is touched, so a run that cannot begin changes
  /// nothing. Later calls only return the path. Errors (bad_input): another run writes there, it
  /// cannot be created or written to.
  virtual Result<std::filesystem::path> out_directory(const OutputFiles& files) = 0;

  virtual Console& console() = 0;

  /// Appends one JSON object (a line without line break) to events.jsonl. Kept in memory until the
  /// output directory is taken; lost when that never happens.
  virtual void record_event(const std::string& json) = 0;

  /// To be called with the job's outcome when it has ended, before the session is destroyed:
  /// records it, and makes its exit code that of a shutdown that takes too long. Returns the
  /// outcome to report: a job that stopped because a launcher drains was interrupted by that node,
  /// not by the user.
  virtual Result<void> finish(Result<void> outcome) { return outcome; }

  /// To be called before blocking on an actor's answer. A session whose actors have no threads of
  /// their own (a simulation) runs everything that can run and returns true: what has not been
  /// answered then never will be. Others return false at once.
  virtual bool run_pending() { return false; }
};

}  // namespace troupe
