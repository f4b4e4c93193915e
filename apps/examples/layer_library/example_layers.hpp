#pragma once

#include "troupe/model_parallel/layer.hpp"
#include "troupe/result.hpp"

namespace example_layers {

/// "swiglu": the gated unit of Shazeer, "GLU Variants Improve Transformer", 2020, over the last
/// dimension: (silu(x w1^T) * (x w3^T)) w2^T, without biases.
///
/// Parameters: w1.weight and w3.weight [hidden, features], w2.weight [features, hidden].
troupe::Result<void> add_swiglu(troupe::mp::libtorch::LayerRegistry& registry);

/// "loss.focal": Lin et al., "Focal Loss for Dense Object Detection", 2017, over the last dimension
/// of the outputs: the mean over the targets that count of -(1 - p)^gamma log(p), where p is the
/// softmax of the target's class.
///
/// Attributes: gamma (2), ignore_index. Needs targets: TARGETS_CLASS_INDICES.
troupe::Result<void> add_focal_loss(troupe::mp::libtorch::LayerRegistry& registry);

}  // namespace example_layers
