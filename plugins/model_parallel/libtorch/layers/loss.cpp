// Loss layers: (outputs, targets) -> the mean over the micro-batch.
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mse_loss.h>
#include <c10/util/Exception.h>

#include "libtorch/layers/builtin.hpp"

namespace troupe::mp::libtorch {
namespace {

class LossLayer : public Layer {
 public:
  bool is_loss() const final { return true; }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) final {
    TORCH_CHECK(inputs.size() == 2 && inputs[0].defined() && inputs[1].defined(),
                "a loss reads outputs and targets");
    return {loss(inputs[0], inputs[1])};
  }

 private:
  virtual at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const = 0;
};

/// Mean squared error over all elements.
class Mse final : public LossLayer {
  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const override {
    // Without this check LibTorch would broadcast, silently, to a wrong mean.
    TORCH_CHECK(outputs.sizes() == targets.sizes(), "outputs of shape ", outputs.sizes(),
                " and targets of shape ", targets.sizes(), " differ");
    return at::mse_loss(outputs, targets.to(outputs.scalar_type()));
  }
};

/// Softmax cross-entropy against class indices, or against class probabilities where the targets
/// are floating-point.
class CrossEntropy final : public LossLayer {
 public:
  std::uint32_t count_correct(const std::vector<at::Tensor>& inputs) const override {
    if (inputs[1].is_floating_point()) return 0;
    const at::Tensor hits = inputs[0].argmax(1).eq(inputs[1]);
    return static_cast<std::uint32_t>(hits.sum().item<std::int64_t>());
  }

 private:
  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const override {
    if (targets.is_floating_point())
      return at::cross_entropy_loss(outputs, targets.to(outputs.scalar_type()));
    // LibTorch would leave out rows of its ignore index and divide by the number of the others,
    // which is not the weight that a micro-batch has.
    TORCH_CHECK(targets.numel() == 0 || targets.min().item<std::int64_t>() >= 0,
                "negative class index");
    return at::cross_entropy_loss(outputs, targets.to(at::kLong));
  }
};

}  // namespace

Result<void> add_loss_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("loss.mse", [](const LayerSetup&) { return std::make_unique<Mse>(); }));
  return registry.add("loss.cross_entropy",
                      [](const LayerSetup&) { return std::make_unique<CrossEntropy>(); });
}

}  // namespace troupe::mp::libtorch
