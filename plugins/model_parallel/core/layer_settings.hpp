#pragma once

#include <vector>

#include "core/optimizer_config.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// What a job says of layers by patterns of their names.
struct LayerRules {
  std::vector<v1::Recompute> recompute;
  std::vector<v1::WireType> wire;
};

/// The setting of each layer; a loss is neither recomputed nor rounded. Errors name the field: a
/// pattern without a layer, a wire type that the precision cannot be rounded to.
Result<std::vector<v1::StageConfig::LayerSetting>> layer_settings(
    const std::vector<v1::Layer>& layers, const LayerRules& rules, v1::Precision precision,
    const Locate& locate);

}  // namespace troupe::mp
