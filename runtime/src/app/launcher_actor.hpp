#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "app/child_processes.hpp"
#include "troupe/api.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// What a launcher's actor works with. `children` outlives the actor.
struct LauncherActorConfig {
  runtime::v1::NodeInfo info;
  std::string host;              ///< where its workers listen
  std::filesystem::path binary;  ///< what they are started from
  std::vector<std::string> plugin_directories;
  Environment environment;  ///< of the node file; wins over what a job asks for
  std::chrono::milliseconds drain{};
  ChildProcesses* children = nullptr;
};

/// To a launcher's actor: start no more workers, and tell the drivers of those there are, so that
/// their jobs end.
struct LauncherDrain {};

/// How long a worker may go on after its driver is gone or the launcher has drained; it has no one
/// left to work for.
inline constexpr std::chrono::milliseconds abandoned_grace{2000};

/// Answers hello, ping, StartWorker, StopWorker, which only the worker's own run may ask for, and
/// GetStatus. Watches whoever asked for a worker and stops the workers of a caller that is gone.
/// Detached, since a fork may take a moment; a published actor.
TROUPE_API caf::actor spawn_launcher_actor(caf::actor_system& system, LauncherActorConfig config);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::LauncherDrain)
