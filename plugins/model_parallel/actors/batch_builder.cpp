#include "actors/batch_builder.hpp"

#include <exception>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include "actors/driver_messages.hpp"
#include "troupe/guard.hpp"

namespace troupe::mp {
namespace {

Result<Batch> build(DataSource& source, const BuildBatch& request) {
  try {
    return source.batch(request.ref.epoch, request.ref.index, request.batch_size);
  } catch (const std::exception& exception) {
    return internal_error("data", exception.what());
  }
}

caf::behavior builder_behavior(caf::event_based_actor* self, std::shared_ptr<DataSource> source) {
  guard(*self);
  return {
      [source](const BuildBatch& request) {
        BatchBuilt answer;
        auto batch = build(*source, request);
        if (batch)
          answer.batch = std::move(batch).value();
        else
          answer.error = batch.error();
        return answer;
      },
  };
}

}  // namespace

caf::actor spawn_batch_builder(caf::actor_system& system, ExecutionPolicy policy,
                               std::shared_ptr<DataSource> source) {
  return spawn_compute(system, policy, builder_behavior, std::move(source));
}

}  // namespace troupe::mp
