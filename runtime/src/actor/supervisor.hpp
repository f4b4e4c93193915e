#pragma once

#include <functional>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "core/restart_policy.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Supervisor -> listener: the child runs, for the first time or again.
struct ChildStarted {
  std::string name;
  caf::actor child;
  int restarts = 0;  ///< so far
};

/// Supervisor -> listener: the child is gone for good, because it ended in order (no error) or
/// because its restarts are used up. The supervisor ends with it.
struct ChildEnded {
  std::string name;
  bool failed = false;
  Error error;  ///< the last failure, if `failed`
};

struct SupervisorConfig {
  std::string name;  ///< of the child, in errors
  /// Creates the child; called on the supervisor's thread, so it must not block. An error counts
  /// as a failure of the child.
  std::function<Result<caf::actor>()> start;
  RestartPolicy::Settings restarts;
  caf::actor listener;  ///< gets ChildStarted and ChildEnded
};

/// Keeps one child alive within its restart budget: starts it, watches it, starts it again after
/// the policy's delay when it fails. When the supervisor is told to exit, so is the child, and no
/// restart follows. (Nothing of the runtime restarts actors yet; it is here for plugins.)
TROUPE_API caf::actor spawn_supervisor(caf::actor_system& system, SupervisorConfig config);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ChildStarted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ChildEnded)
