#pragma once

#include <memory>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "data/data_source.hpp"
#include "troupe/spawn.hpp"

namespace troupe::mp {

/// Builds batches of one data source on request: answers BuildBatch with BatchBuilt. Decodes and
/// converts, so it is a compute actor.
caf::actor spawn_batch_builder(caf::actor_system& system, ExecutionPolicy policy,
                               std::shared_ptr<DataSource> source);

}  // namespace troupe::mp
