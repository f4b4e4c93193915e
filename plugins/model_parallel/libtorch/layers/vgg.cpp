// A convolution of a VGG network (Simonyan and Zisserman, 2014) with all that follows it up to the
// next one, so that no boundary between layers comes in between.
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <memory>
#include <string>

#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Attributes: max_pool (0). There is batch norm if the layer has its buffers.
class VggConvolution final : public Layer {
 public:
  explicit VggConvolution(const LayerSetup& setup)
      : convolution_(Convolution(setup.tensor("weight"), {1, 1}, {1, 1}), setup.tensor("bias")),
        max_pool_(setup.attribute("max_pool", 0) != 0) {
    if (setup.config().buffers_size() == 0) return;
    // It has the number after the convolution's, as in torchvision.
    const std::string buffer = setup.config().buffers(0).name();
    norm_ =
        std::make_unique<BatchNorm>(make_batch_norm(setup, buffer.substr(0, buffer.rfind('.'))));
  }

  at::MemoryFormat layout() const override { return convolution_.layout(); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    at::Tensor x = convolution_(only(inputs));
    x = norm_ ? norm_->forward(x, {}, BatchNorm::Activation::relu, context) : at::relu(x);
    if (max_pool_) x = at::max_pool2d(x, {2, 2}, {2, 2});
    return {x};
  }

  std::vector<OwnGradient> take_gradients() override { return convolution_.take_gradients(); }
  void discard_gradients() override { convolution_.discard_gradients(); }

 private:
  BiasedConvolution convolution_;
  bool max_pool_;
  std::unique_ptr<BatchNorm> norm_;
};

}  // namespace

Result<void> add_vgg_layers(LayerRegistry& registry) {
  return registry.add("vgg.convolution", [](const LayerSetup& setup) {
    return std::make_unique<VggConvolution>(setup);
  });
}

}  // namespace troupe::mp::libtorch
