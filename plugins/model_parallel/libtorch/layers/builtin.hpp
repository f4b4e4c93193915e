#pragma once

#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// resnet.stem, resnet.basic_block, resnet.bottleneck, resnet.head.
Result<void> add_resnet_layers(LayerRegistry& registry);

/// linear, relu, tanh, gelu, flatten, add, identity.
Result<void> add_simple_layers(LayerRegistry& registry);

/// conv2d, batch_norm2d, max_pool2d, adaptive_avg_pool2d.
Result<void> add_image_layers(LayerRegistry& registry);

/// embedding, position_embedding, last_position, layer_norm.
Result<void> add_token_layers(LayerRegistry& registry);

/// dropout, drop_path.
Result<void> add_regularisation_layers(LayerRegistry& registry);

/// vgg.convolution.
Result<void> add_vgg_layers(LayerRegistry& registry);

/// vit.embedding, vit.block, vit.head.
Result<void> add_vit_layers(LayerRegistry& registry);

/// gpt2.block.
Result<void> add_gpt2_layers(LayerRegistry& registry);

/// loss.mse, loss.l1, loss.huber, loss.bce_with_logits, loss.cross_entropy.
Result<void> add_loss_layers(LayerRegistry& registry);

/// All of them.
Result<void> add_builtin_layers(LayerRegistry& registry);

}  // namespace troupe::mp::libtorch
