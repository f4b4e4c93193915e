#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "core/run_key.hpp"
#include "plugin/host.hpp"
#include "transport/basp_limits.hpp"
#include "troupe/api.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/spawn.hpp"

namespace troupe {

/// What a worker's node actor works with. The pointers outlive the actor.
struct NodeActorConfig {
  runtime::v1::NodeInfo info;
  RunKey run_key = {};
  std::set<std::string> nodes;  ///< of the job: who may call, besides the driver
  caf::actor endpoint;
  PluginHost* plugins = nullptr;
  BaspNetwork* network = nullptr;
  ExecutionPolicy policy = ExecutionPolicy::detached;
  /// The driver has said hello.
  std::function<void()> on_driver;
  /// The driver asked this worker to finish, within `deadline`. Called once at most.
  std::function<void(std::chrono::milliseconds deadline)> on_drain;
  /// The driver is lost. Called once at most.
  std::function<void(const std::string& reason)> on_driver_lost;
};

/// The directory of a worker process and the one actor of it that peers call by control messages:
/// hello, join, spawn, status, drain. Says hello to anyone of the same build, but hands its
/// endpoint only to the nodes of its own run, each once; takes orders only from the driver that has
/// said hello; and answers status questions to all. Tells the driver what fails here: a hosted
/// actor that ends with an error, a peer that is lost, a parcel that cannot be delivered. A
/// published actor, which ends the actors it hosts when it ends.
caf::actor spawn_node_actor(caf::actor_system& system, NodeActorConfig config);

}  // namespace troupe
