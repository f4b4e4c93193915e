#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "libtorch/dropout.hpp"
#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// How the heads of an attention layer look at the positions.
struct AttentionShape {
  std::int64_t heads = 1;
  bool causal = false;  ///< a position sees itself and those before it
};

/// Scaled dot-product attention of several heads (Vaswani et al., "Attention Is All You Need",
/// 2017). `projected` is (samples, positions, 3 * width): queries, keys and values side by side,
/// the heads side by side in each. Returns (samples, positions, width). `dropout` applies to the
/// weights after the softmax.
///
/// Written with batched products and a softmax, which sum in the same order every time. Errors:
/// c10::Error.
at::Tensor attend(const at::Tensor& projected, const AttentionShape& shape, const Dropout& dropout,
                  const ForwardContext& context);

}  // namespace troupe::mp::libtorch
