#pragma once

#include <memory>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "troupe/model_parallel/executor.hpp"
#include "troupe/spawn.hpp"

namespace troupe::mp {

/// Spawns the compute actor that owns `executor` and turns the messages of messages.hpp into calls.
/// It answers whoever sent the message. Quits on an exit message.
///
/// `slow_down_seconds` is added to every forward and backward: a sleep of the actor's own thread in
/// production, a delay of the simulated clock under test.
caf::actor spawn_executor(caf::actor_system& system, ExecutionPolicy policy,
                          std::unique_ptr<StageExecutor> executor, double slow_down_seconds);

}  // namespace troupe::mp
