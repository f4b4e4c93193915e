#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The layers of a residual network: "stem", "layer1.0", ..., "fc". Names, shapes and order of
/// parameters and buffers are those of torchvision 0.14 (torchvision/models/resnet.py), as is the
/// initialisation: convolutions by Kaiming (normal, fan-out, gain of ReLU), batch norm by ones and
/// zeros, the classifier as torch.nn.Linear. Error locations are field paths from "model".
Result<std::vector<v1::Layer>> list_resnet_layers(const v1::ResNet& config);

}  // namespace troupe::mp
