#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "troupe/mailer.hpp"
#include "troupe/messages.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/runtime/v1/node.pb.h"
#include "troupe/spawn.hpp"

namespace troupe::testing {

/// What the endpoint of one node has published to its subscribers.
struct Observed {
  std::vector<NodeDown> down;
  std::vector<Error> failures;
};

struct SimulationOptions {
  std::uint64_t seed = 1;
  runtime::v1::LinkLimits limits;    ///< zero fields mean the documented defaults
  runtime::v1::Heartbeat heartbeat;  ///< the same
};

/// Several nodes in one actor system, on CAF's testing scheduler and in virtual time, all attached
/// to each other. The endpoints are the real ones; between them frames wait in one queue for each
/// ordered pair of nodes, so that they arrive in order on a link and in any order on different
/// ones. What happens next is drawn from the seed: which runnable actor takes one message, or which
/// link delivers one frame. The same seed gives the same run.
///
///   SimulatedCluster cluster({"a", "b"}, {seed});
///   auto stage = cluster.system().spawn(stage_actor, cluster.mailer("a"), ...);  // never detached
///   cluster.bind("a", "stage.0", stage);
///   cluster.mailer("b").send(Parcel{{"a", "stage.0"}, "pipeline", ...});
///   cluster.run_until_idle();
///   cluster.kill("a");  cluster.run_until_idle();
///   BOOST_TEST(cluster.observed("b").down.size() == 1u);
///
/// Use it from one thread. Spawn compute actors with `policy()`.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(std::vector<std::string> nodes, SimulationOptions options = {});

  /// Ends all endpoints and hosted actors; what is still queued is dropped.
  ~SimulatedCluster();
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  caf::actor_system& system();
  static constexpr ExecutionPolicy policy() { return ExecutionPolicy::scheduled; }
  const Mailer& mailer(const std::string& node) const;
  const caf::actor& endpoint(const std::string& node) const;

  /// Makes `actor` one of the node's: it is killed and frozen with it.
  void host(const std::string& node, const caf::actor& actor);
  /// `host`, and binds it under a name.
  void bind(const std::string& node, const std::string& name, const caf::actor& actor);

  // --- running ---

  /// One event; false when nothing can happen without time passing.
  bool step();
  /// Steps until nothing can happen without time passing. Throws std::runtime_error after
  /// `max_steps`: the system is busy for ever.
  void run_until_idle(std::size_t max_steps = 100'000'000);
  /// Lets virtual time pass, in small slices, running until idle after each.
  void advance(std::chrono::milliseconds duration);

  // --- misfortune ---

  /// The process dies: its connections close, its actors end, everything to and from it is lost.
  void kill(const std::string& node);
  /// The process stops but keeps its connections: nothing on it runs, nothing leaves or arrives.
  void freeze(const std::string& node);
  /// It goes on where it stopped.
  void thaw(const std::string& node);
  /// The network between two nodes loses everything, silently and in both directions.
  void cut(const std::string& a, const std::string& b);
  /// The actor takes its turn only once in `factor` times that it could; 1 is full speed.
  void slow_down(const caf::actor& actor, unsigned factor);
  /// The same for frames from one node to another.
  void slow_down_link(const std::string& from, const std::string& to, unsigned factor);

  // --- observing ---

  /// What has been published on the node, from the start.
  const Observed& observed(const std::string& node) const;
  /// Counters of the node's outgoing links, peaks included. Runs until idle.
  std::vector<runtime::v1::Status::LinkStatus> link_status(const std::string& node);
  /// Payload and header bytes of the frames that wait between two nodes now, and the most that
  /// ever did.
  std::uint64_t bytes_in_transit(const std::string& from, const std::string& to) const;
  std::uint64_t peak_bytes_in_transit(const std::string& from, const std::string& to) const;
  /// Payload and header bytes of all frames ever sent between two nodes, heartbeats included.
  std::uint64_t bytes_sent(const std::string& from, const std::string& to) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::testing
