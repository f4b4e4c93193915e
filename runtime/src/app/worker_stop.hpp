#pragma once

#include <chrono>
#include <vector>

#include <caf/actor.hpp>

#include "app/session_node.hpp"
#include "core/run_key.hpp"

namespace troupe {

/// Has the driver actor, from which workers take orders, ask all workers to finish within
/// `deadline`; their silence is no failure any more. Does not wait.
void drain_workers(const caf::actor& driver_actor, const caf::actor& endpoint,
                   const std::vector<SessionNode>& nodes, const RunKey& run_key,
                   std::chrono::milliseconds deadline);

/// Has the launchers stop their workers of this job, with `kill` at once: asks all of them, then
/// waits for all, for at most `timeout`. Launchers that are lost are not waited for; a worker that
/// one of them keeps is stopped when it sees that its driver has gone.
void stop_remote_workers(const caf::actor& driver_actor, const std::vector<SessionNode>& nodes,
                         const RunKey& run_key, bool kill, std::chrono::milliseconds timeout);

}  // namespace troupe
