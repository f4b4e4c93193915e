// Layers of residual networks (He et al., "Deep Residual Learning for Image Recognition", 2015) as
// torchvision computes them: its "v1.5" bottleneck has the stride in the 3x3 convolution.
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <c10/util/Exception.h>

#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// A convolution without bias, followed by batch normalisation.
class ConvNorm {
 public:
  /// `conv` and `norm` are the modules' names within the layer. The padding keeps the size at
  /// stride 1.
  ConvNorm(const LayerSetup& setup, const std::string& conv, const std::string& norm,
           std::int64_t stride, std::int64_t groups = 1)
      : convolution_(make_convolution(setup.tensor(conv + ".weight"), stride, groups)),
        norm_(make_batch_norm(setup, norm)) {}

  /// Then, as far as they are asked for, the addition of `addend` and ReLU.
  at::Tensor operator()(const at::Tensor& x, const ForwardContext& context,
                        BatchNorm::Activation activation = BatchNorm::Activation::none,
                        const at::Tensor& addend = {}) const {
    return norm_.forward(convolution_.forward(x), addend, activation, context);
  }

  void take_gradient(std::vector<Layer::OwnGradient>& gradients) {
    libtorch::take_gradient(convolution_, gradients);
  }

  void discard_gradient() { convolution_.discard_gradient(); }

  at::MemoryFormat layout() const { return layout_of_convolutions(convolution_.weight()); }

 private:
  static Convolution make_convolution(const at::Tensor& weight, std::int64_t stride,
                                      std::int64_t groups) {
    TORCH_CHECK(weight.dim() == 4, "the weight of a convolution must have 4 dimensions");
    const std::int64_t padding = (weight.size(2) - 1) / 2;
    return Convolution(weight, {stride, stride}, {padding, padding}, groups);
  }

  Convolution convolution_;
  BatchNorm norm_;
};

/// The first convolution; with `small: 1` without the max pooling (its stride is then 1).
class Stem final : public Layer {
 public:
  explicit Stem(const LayerSetup& setup)
      : small_(setup.attribute("small", 0) != 0), first_(setup, "conv1", "bn1", small_ ? 1 : 2) {}

  at::MemoryFormat layout() const override { return first_.layout(); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    at::Tensor x = first_(only(inputs), context, BatchNorm::Activation::relu);
    if (!small_) x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    return {x};
  }

  std::vector<OwnGradient> take_gradients() override {
    std::vector<OwnGradient> gradients;
    first_.take_gradient(gradients);
    return gradients;
  }

  void discard_gradients() override { first_.discard_gradient(); }

 private:
  bool small_;
  ConvNorm first_;
};

/// Convolutions around which the input is added; a 1x1 convolution fits the input to the output
/// where "downsample" is among the parameters.
class Block final : public Layer {
 public:
  enum class Kind { basic, bottleneck };

  Block(const LayerSetup& setup, Kind kind) {
    const auto stride = static_cast<std::int64_t>(setup.attribute("stride", 1));
    // The stride is in the first 3x3 convolution.
    path_.emplace_back(setup, "conv1", "bn1", kind == Kind::basic ? stride : 1);
    path_.emplace_back(setup, "conv2", "bn2", kind == Kind::basic ? 1 : stride,
                       whole_attribute(setup, "groups", 1, 1));
    if (kind == Kind::bottleneck) path_.emplace_back(setup, "conv3", "bn3", 1);
    if (setup.has("downsample.0.weight"))
      downsample_ = std::make_unique<ConvNorm>(setup, "downsample.0", "downsample.1", stride);
  }

  at::MemoryFormat layout() const override { return path_.front().layout(); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& input = only(inputs);
    constexpr auto relu = BatchNorm::Activation::relu;
    at::Tensor x = input;
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) x = path_[i](x, context, relu);
    const at::Tensor shortcut = downsample_ ? (*downsample_)(input, context) : input;
    return {path_.back()(x, context, relu, shortcut)};
  }

  std::vector<OwnGradient> take_gradients() override {
    std::vector<OwnGradient> gradients;
    for (auto& part : path_) part.take_gradient(gradients);
    if (downsample_) downsample_->take_gradient(gradients);
    return gradients;
  }

  void discard_gradients() override {
    for (auto& part : path_) part.discard_gradient();
    if (downsample_) downsample_->discard_gradient();
  }

 private:
  std::vector<ConvNorm> path_;
  std::unique_ptr<ConvNorm> downsample_;
};

/// Mean over the image, then the classifier.
class Head final : public Layer {
 public:
  explicit Head(const LayerSetup& setup)
      : weight_(setup.tensor("weight")), bias_(setup.tensor("bias")) {}

  at::MemoryFormat layout() const override { return layout_of_convolutions(weight_); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {at::linear(only(inputs).mean({2, 3}), weight_, bias_)};
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace

Result<void> add_resnet_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("resnet.stem",
                          [](const LayerSetup& setup) { return std::make_unique<Stem>(setup); }));
  TROUPE_TRY(registry.add("resnet.basic_block", [](const LayerSetup& setup) {
    return std::make_unique<Block>(setup, Block::Kind::basic);
  }));
  TROUPE_TRY(registry.add("resnet.bottleneck", [](const LayerSetup& setup) {
    return std::make_unique<Block>(setup, Block::Kind::bottleneck);
  }));
  return registry.add("resnet.head",
                      [](const LayerSetup& setup) { return std::make_unique<Head>(setup); });
}

}  // namespace troupe::mp::libtorch
