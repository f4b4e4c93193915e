#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

namespace troupe::mp::libtorch {

/// A 2-d convolution without bias: at::conv2d, but on oneDNN's fast kernels in all
/// three passes whatever the batch. LibTorch 1.13 chooses slow paths of its own for the small
/// batches of a pipeline. For other element types, other devices and in builds without oneDNN it
/// is at::conv2d.
///
/// The gradient of the weight does not travel through autograd where oneDNN computes it: it
/// accumulates here, in the order of the backward calls and in the kernels' own layout, until
/// `take_gradient`. Autograd reports none for the weight then. This spares two passes over all
/// weights for each micro-batch. The gradient of the input is computed only if it is wanted.
///
/// Results depend on the shapes and the number of threads, but not on timing or on earlier calls.
///
/// Thread: one at a time; backward must run in a thread with as many OpenMP threads. A graph made
/// by `forward` may outlive this object. Errors: c10::Error or std::exception.
class Convolution {
 public:
  using Pair = std::array<std::int64_t, 2>;  ///< vertical, horizontal

  /// `weight` is (out channels, in channels / groups, height, width), row-major. It is shared, not
  /// copied: changes in place are noticed if LibTorch's operations make them. Each of the `groups`
  /// parts of the output's channels sees its own part of the input's.
  Convolution(at::Tensor weight, Pair stride, Pair padding, std::int64_t groups = 1);
  ~Convolution();
  Convolution(Convolution&&) noexcept;
  Convolution& operator=(Convolution&&) noexcept;

  /// `input` is (samples, channels, height, width), fastest if channels-last. The result is
  /// channels-last where oneDNN computes it; so is the gradient of the input.
  at::Tensor forward(const at::Tensor& input) const;

  /// The weight's gradient over all backward calls since it was last taken or discarded,
  /// row-major; undefined if there is none or autograd has it.
  at::Tensor take_gradient();

  void discard_gradient();

  const at::Tensor& weight() const;

 private:
  class State;
  class Function;

  c10::intrusive_ptr<State> state_;
};

}  // namespace troupe::mp::libtorch
