#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// Dropout (Srivastava et al., 2014): in training each element is zero with probability `rate`, and
/// the others are divided by 1 - rate.
///
/// Which elements are dropped is a function of (seed, step, index of the sample in the epoch, name)
/// and of the element's place in its sample: not of the cut, the micro-batch, the device, the type
/// or earlier calls. Nothing is kept for the backward, which draws the same again.
///
/// Thread: any. Errors: c10::Error.
class Dropout {
 public:
  /// `name` is unique in the model: the layer's, with the place in it where it has several.
  Dropout(std::string name, double rate);

  /// `x` has one row for each sample of the micro-batch, in order; in evaluation, and at rate 0,
  /// the result is `x`.
  at::Tensor operator()(const at::Tensor& x, const ForwardContext& context) const;

 private:
  class Function;

  std::string name_;
  double rate_;
};

/// Stochastic depth (Huang et al., "Deep Networks with Stochastic Depth", 2016): the same for whole
/// samples.
class DropPath {
 public:
  DropPath(std::string name, double rate);

  at::Tensor operator()(const at::Tensor& x, const ForwardContext& context) const;

 private:
  std::string name_;
  double rate_;
};

}  // namespace troupe::mp::libtorch
