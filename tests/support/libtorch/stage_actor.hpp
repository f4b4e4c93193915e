#pragma once

#include <memory>
#include <utility>

#include "actors/stage_actor.hpp"
#include "support/libtorch/stage.hpp"

namespace troupe::mp::test {

/// A factory of stage actors on LibTorch, for simulated nodes: what the plugin does on device
/// "cpu", with `kinds` beside the built-in layers.
inline ActorFactory libtorch_stages(const Kinds& kinds = {}) {
  return [registry = layer_registry(kinds)](
             ActorContext& context, const google::protobuf::Any& any) -> Result<caf::actor> {
    v1::StageConfig config;
    if (!any.UnpackTo(&config)) return internal_error("stage", "the config is no StageConfig");
    return spawn_stage_on(
        std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), registry), context,
        config);
  };
}

}  // namespace troupe::mp::test
