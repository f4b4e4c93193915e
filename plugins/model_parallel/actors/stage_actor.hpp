#pragma once

#include <google/protobuf/any.pb.h>
#include <caf/actor.hpp>

#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The factory "model_parallel.stage": creates the executor for the device of a StageConfig and
/// the actor that drives it. A config of another type, or a device that does not exist, is an
/// error; what fails later is sent as `Failed` to the pipeline actor.
Result<caf::actor> spawn_stage(ActorContext& context, const google::protobuf::Any& config);

}  // namespace troupe::mp
