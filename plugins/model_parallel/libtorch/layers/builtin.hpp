#pragma once

#include "libtorch/layer.hpp"

namespace troupe::mp::libtorch {

/// resnet.stem, resnet.basic_block, resnet.bottleneck, resnet.head.
Result<void> add_resnet_layers(LayerRegistry& registry);

/// linear, relu, tanh, flatten, identity.
Result<void> add_simple_layers(LayerRegistry& registry);

/// loss.mse, loss.l1, loss.huber, loss.bce_with_logits, loss.cross_entropy.
Result<void> add_loss_layers(LayerRegistry& registry);

/// All of them.
Result<void> add_builtin_layers(LayerRegistry& registry);

}  // namespace troupe::mp::libtorch
