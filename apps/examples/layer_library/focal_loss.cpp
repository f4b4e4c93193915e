#include <cstdint>

#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/pow.h>

#include "example_layers.hpp"

namespace example_layers {
namespace {

using troupe::mp::libtorch::ForwardContext;
using troupe::mp::libtorch::Layer;
using troupe::mp::libtorch::LayerSetup;

class FocalLoss final : public Layer {
 public:
  explicit FocalLoss(const LayerSetup& setup)
      : gamma_(setup.attribute("gamma", 2)),
        ignore_index_(static_cast<std::int64_t>(setup.attribute("ignore_index", -100))) {}

  bool is_loss() const override { return true; }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    TORCH_CHECK(inputs.size() == 2 && inputs[0].dim() >= 2, "expected outputs and targets");
    const at::Tensor scores = inputs[0].reshape({-1, inputs[0].size(-1)});
    const at::Tensor targets = inputs[1].reshape({-1}).to(at::kLong);
    TORCH_CHECK(targets.size(0) == scores.size(0), "targets of shape ", inputs[1].sizes(),
                " do not fit outputs of shape ", inputs[0].sizes());
    const at::Tensor counts = targets.ne(ignore_index_);
    // What does not count takes part with the class 0, and with the weight 0.
    const at::Tensor classes = targets.masked_fill(counts.logical_not(), 0).unsqueeze(1);
    const at::Tensor log_p = at::log_softmax(scores, 1).gather(1, classes).squeeze(1);
    const at::Tensor losses = -at::pow(1 - at::exp(log_p), gamma_) * log_p;
    const at::Tensor weights = counts.to(losses.scalar_type());
    return {(losses * weights).sum() / weights.sum().clamp_min(1)};
  }

  std::uint64_t count_correct(const std::vector<at::Tensor>& inputs) const override {
    const at::Tensor hits = inputs[0].argmax(-1).eq(inputs[1]) & inputs[1].ne(ignore_index_);
    return static_cast<std::uint64_t>(hits.sum().item<std::int64_t>());
  }

 private:
  double gamma_;
  std::int64_t ignore_index_;
};

}  // namespace

troupe::Result<void> add_focal_loss(troupe::mp::libtorch::LayerRegistry& registry) {
  return registry.add("loss.focal",
                      [](const LayerSetup& setup) { return std::make_unique<FocalLoss>(setup); });
}

}  // namespace example_layers
