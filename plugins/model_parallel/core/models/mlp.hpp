#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a multi-layer perceptron with the names of torchvision.ops.MLP and the initial
/// values of torch.nn.Linear. Errors are located at "model.mlp...".
Result<std::vector<v1::Layer>> list_mlp_layers(const v1::Mlp& config);

}  // namespace troupe::mp
