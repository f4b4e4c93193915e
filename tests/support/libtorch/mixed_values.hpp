#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "support/libtorch/stage.hpp"

namespace troupe::mp::test {

/// x -> 2 x, a count of the rows' positive elements (int64), a mask (bool), nothing.
inline FunctionLayer::Tensors spread(const FunctionLayer::Tensors& in) {
  const at::Tensor positive = in[0].gt(0);
  return {in[0] * 2, positive.sum(1), positive, at::Tensor()};
}

/// (x, counts, mask, nothing) -> a tensor that depends on each of them.
inline FunctionLayer::Tensors gather(const FunctionLayer::Tensors& in) {
  TORCH_CHECK(in.size() == 4 && !in[3].defined(), "the absent value arrived");
  TORCH_CHECK(in[1].scalar_type() == at::kLong && in[2].scalar_type() == at::kBool);
  return {in[0] * in[2].to(in[0].scalar_type()) + in[1].unsqueeze(1).to(in[0].scalar_type())};
}

/// x -> x + 1, through which no gradient passes.
inline FunctionLayer::Tensors constant(const FunctionLayer::Tensors& in) {
  return {in[0].detach() + 1};
}

/// Layers with values of every type that may cross a stage boundary: "test.spread" has four
/// outputs, which "test.gather" reads; "test.constant" has an absent gradient.
inline Kinds mixed_value_kinds() {
  return {{"test.spread", spread}, {"test.gather", gather}, {"test.constant", constant}};
}

}  // namespace troupe::mp::test
