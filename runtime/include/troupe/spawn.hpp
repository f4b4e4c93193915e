#pragma once

#include <utility>

#include <caf/actor_system.hpp>
#include <caf/spawn_options.hpp>

namespace troupe {

/// Where compute actors run. The seam between production and deterministic tests: CAF's testing
/// scheduler starts real threads for detached actors and is then no longer deterministic.
enum class ExecutionPolicy {
  detached,   ///< a thread of its own for each compute actor: production
  scheduled,  ///< the actor system's scheduler: simulation and unit tests
};

/// Spawns an actor that may compute for long. Actors never name a spawn option themselves.
template <class F, class... Ts>
auto spawn_compute(caf::actor_system& system, ExecutionPolicy policy, F&& f, Ts&&... args) {
  if (policy == ExecutionPolicy::detached)
    return system.spawn<caf::detached>(std::forward<F>(f), std::forward<Ts>(args)...);
  return system.spawn(std::forward<F>(f), std::forward<Ts>(args)...);
}

}  // namespace troupe
