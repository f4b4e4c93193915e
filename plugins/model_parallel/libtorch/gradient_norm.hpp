#pragma once

#include <ATen/core/Tensor.h>

namespace troupe::mp::libtorch {

struct SquaredNorm {
  double value = 0;
  bool finite = true;  ///< of every element; the sum of finite elements may still overflow
};

/// Sum of the squares of a floating-point tensor's elements, in double and in one fixed order,
/// whatever the number of threads. Zero for an undefined tensor.
SquaredNorm squared_norm(const at::Tensor& tensor);

}  // namespace troupe::mp::libtorch
