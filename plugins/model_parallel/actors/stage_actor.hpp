#pragma once

#include <memory>

#include <google/protobuf/any.pb.h>
#include <caf/actor.hpp>

#include "troupe/model_parallel/executor.hpp"
#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The factory "model_parallel.stage": creates the executor for the device of a StageConfig and
/// the actor that drives it. A config of another type, or a device that does not exist, is an
/// error; what fails later is sent as `Failed` to the pipeline actor.
Result<caf::actor> spawn_stage(ActorContext& context, const google::protobuf::Any& config);

/// The same on an executor that the caller has created.
caf::actor spawn_stage_on(std::unique_ptr<StageExecutor> executor, ActorContext& context,
                          const v1::StageConfig& config);

}  // namespace troupe::mp
