#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a VGG network with torchvision's names and initial values. Errors are located at
/// "model.vgg...".
Result<std::vector<v1::Layer>> list_vgg_layers(const v1::Vgg& config);

}  // namespace troupe::mp
