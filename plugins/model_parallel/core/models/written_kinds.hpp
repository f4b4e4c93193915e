#pragma once

#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Adds the parameters and buffers of a written layer that leaves them out, from its attributes and
/// with PyTorch's initial values for the module of this kind:
///
///   linear              in_features, out_features, bias (1)
///   conv2d              in_channels, out_channels, kernel_size, groups (1), bias (1)
///   batch_norm2d        channels
///   layer_norm          features
///   embedding           rows, features
///   position_embedding  rows, features
///
/// Layers of other kinds and those with parameters stay as they are. `where` is the layer's field.
Result<void> complete_parameters(v1::Layer& layer, const std::string& where);

}  // namespace troupe::mp
