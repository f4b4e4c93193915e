#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a vision transformer with torchvision's names and initial values. Errors are
/// located at "model.vit...".
Result<std::vector<v1::Layer>> list_vision_transformer_layers(const v1::VisionTransformer& config);

}  // namespace troupe::mp
