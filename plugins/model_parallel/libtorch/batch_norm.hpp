#pragma once

#include <ATen/core/Tensor.h>

#include "libtorch/deferred_statistics.hpp"
#include "troupe/model_parallel/layer.hpp"

namespace troupe::mp::libtorch {

/// Batch normalisation of (samples, channels, height, width) over all but the channels, with
/// torchvision's constants, followed by what residual networks do next: the addition of another
/// tensor and ReLU.
///
/// For float32 on the CPU in channels-last order all of it is one operation, which reads and writes
/// each element as seldom as can be; LibTorch's separate operations are bound by memory. Statistics
/// are summed in double and channel by channel, so that results do not depend on the number of
/// threads. Otherwise it is LibTorch's operations.
///
/// Thread: one at a time. Errors: c10::Error.
class BatchNorm {
 public:
  enum class Activation { none, relu };

  /// The tensors stay the caller's. Training changes the running statistics and the number of
  /// batches in place: in `forward`, or when the statistics of the step are committed.
  BatchNorm(at::Tensor scale, at::Tensor shift, at::Tensor running_mean, at::Tensor running_var,
            at::Tensor batches);

  /// `addend` is undefined or of the same shape. Differentiable for `x`, `addend`, scale and
  /// shift; may overwrite neither. Of the context: training, and where its statistics go.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& addend, Activation activation,
                     const ForwardContext& context) const;

 private:
  at::Tensor scale_;
  at::Tensor shift_;
  RunningStatistics running_;
};

}  // namespace troupe::mp::libtorch
