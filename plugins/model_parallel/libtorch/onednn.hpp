#pragma once

#include <cstdint>
#include <memory>

namespace troupe::mp::libtorch {

/// A 2-d convolution's weights and steps: no bias, no dilation.
struct ConvolutionGeometry {
  std::int64_t out_channels = 0;
  std::int64_t in_channels = 0;
  std::int64_t kernel_height = 0;
  std::int64_t kernel_width = 0;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  std::int64_t padding_height = 0;
  std::int64_t padding_width = 0;
  std::int64_t groups = 1;  ///< of both kinds of channels, which are multiples

  std::int64_t out_height(std::int64_t in_height) const {
    return (in_height + 2 * padding_height - kernel_height) / stride_height + 1;
  }
  std::int64_t out_width(std::int64_t in_width) const {
    return (in_width + 2 * padding_width - kernel_width) / stride_width + 1;
  }
};

/// What varies between the calls of one convolution.
struct ConvolutionInput {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  int threads = 1;  ///< OpenMP threads the calls run on; part of what decides the bits
};

/// The three passes of one float32 convolution on the CPU, on oneDNN's own kernels. Inputs,
/// outputs and their gradients are dense channels-last (NHWC) arrays.
///
/// Weights are kept in the layouts the kernels prefer, once for each pass, and packed again only
/// after `weight_changed`. The weight gradient accumulates in such a layout too, in the order of
/// the calls of `backward_weight`.
///
/// Thread: one at a time. Errors: std::exception (dnnl::error).
class OneDnnConvolution {
 public:
  virtual ~OneDnnConvolution();

  virtual void weight_changed() = 0;

  /// `weight` is row-major OIHW, here and below, with the input channels of one group; read only
  /// where it must be packed.
  virtual void forward(const ConvolutionInput& shape, const float* input, const float* weight,
                       float* output) = 0;

  virtual void backward_input(const ConvolutionInput& shape, const float* output_gradient,
                              const float* weight, float* input_gradient) = 0;

  /// Adds to the accumulated weight gradient.
  virtual void backward_weight(const ConvolutionInput& shape, const float* input,
                               const float* output_gradient) = 0;

  /// Whether `backward_weight` was called since the gradient was last taken or discarded.
  virtual bool has_gradient() const = 0;

  /// Writes the accumulated gradient, row-major OIHW, and begins anew. Needs `has_gradient()`.
  virtual void take_gradient(float* gradient) = 0;

  virtual void discard_gradient() = 0;
};

/// Null where Troupe was built without oneDNN.
std::unique_ptr<OneDnnConvolution> make_onednn_convolution(const ConvolutionGeometry& geometry);

}  // namespace troupe::mp::libtorch
