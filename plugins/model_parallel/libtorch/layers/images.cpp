// Layers of one operation on images (samples, channels, height, width).
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Attributes: stride (1), padding (0), groups (1); the size of the kernel is the weight's.
class Conv2d final : public Layer {
 public:
  explicit Conv2d(const LayerSetup& setup) : convolution_(make(setup)) {}

  at::MemoryFormat layout() const override { return convolution_.layout(); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {convolution_(only(inputs))};
  }

  std::vector<OwnGradient> take_gradients() override { return convolution_.take_gradients(); }
  void discard_gradients() override { convolution_.discard_gradients(); }

 private:
  static BiasedConvolution make(const LayerSetup& setup) {
    const std::int64_t stride = whole_attribute(setup, "stride", 1, 1);
    const std::int64_t padding = whole_attribute(setup, "padding", 0, 0);
    return {Convolution(setup.tensor("weight"), {stride, stride}, {padding, padding},
                        whole_attribute(setup, "groups", 1, 1)),
            setup.has("bias") ? setup.tensor("bias") : at::Tensor()};
  }

  BiasedConvolution convolution_;
};

class BatchNorm2d final : public Layer {
 public:
  explicit BatchNorm2d(const LayerSetup& setup)
      : layout_(layout_of_convolutions(setup.tensor("weight"))),
        norm_(make_batch_norm(setup, "")) {}

  at::MemoryFormat layout() const override { return layout_; }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {norm_.forward(only(inputs), {}, BatchNorm::Activation::none, context)};
  }

 private:
  at::MemoryFormat layout_;
  BatchNorm norm_;
};

/// Attributes: kernel_size, stride (kernel_size), padding (0).
class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(const LayerSetup& setup)
      : kernel_(whole_attribute(setup, "kernel_size", 0, 1)),
        stride_(whole_attribute(setup, "stride", kernel_, 1)),
        padding_(whole_attribute(setup, "padding", 0, 0)) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {
        at::max_pool2d(only(inputs), {kernel_, kernel_}, {stride_, stride_}, {padding_, padding_})};
  }

 private:
  std::int64_t kernel_;
  std::int64_t stride_;
  std::int64_t padding_;
};

/// Means over parts of the image, so that `height` x `width` (1 x 1) remain.
class AdaptiveAvgPool2d final : public Layer {
 public:
  explicit AdaptiveAvgPool2d(const LayerSetup& setup)
      : height_(whole_attribute(setup, "height", 1, 1)),
        width_(whole_attribute(setup, "width", 1, 1)) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {at::adaptive_avg_pool2d(only(inputs), {height_, width_})};
  }

 private:
  std::int64_t height_;
  std::int64_t width_;
};

}  // namespace

Result<void> add_image_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("conv2d",
                          [](const LayerSetup& setup) { return std::make_unique<Conv2d>(setup); }));
  TROUPE_TRY(registry.add("batch_norm2d", [](const LayerSetup& setup) {
    return std::make_unique<BatchNorm2d>(setup);
  }));
  TROUPE_TRY(registry.add(
      "max_pool2d", [](const LayerSetup& setup) { return std::make_unique<MaxPool2d>(setup); }));
  return registry.add("adaptive_avg_pool2d", [](const LayerSetup& setup) {
    return std::make_unique<AdaptiveAvgPool2d>(setup);
  });
}

}  // namespace troupe::mp::libtorch
