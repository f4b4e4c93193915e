// Loss layers: (outputs, targets) -> the mean over what counts in the micro-batch, as PyTorch's
// losses of the same names compute it with their reduction "mean".
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
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

/// A loss that compares each output with a number of its own.
class ElementLoss : public LossLayer {
  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const final {
    // Without this check LibTorch would broadcast, silently, to a wrong mean.
    TORCH_CHECK(outputs.sizes() == targets.sizes(), "outputs of shape ", outputs.sizes(),
                " and targets of shape ", targets.sizes(), " differ");
    return compare(outputs, targets.to(outputs.scalar_type()));
  }

  virtual at::Tensor compare(const at::Tensor& outputs, const at::Tensor& targets) const = 0;
};

class Mse final : public ElementLoss {
  at::Tensor compare(const at::Tensor& outputs, const at::Tensor& targets) const override {
    return at::mse_loss(outputs, targets);
  }
};

class L1 final : public ElementLoss {
  at::Tensor compare(const at::Tensor& outputs, const at::Tensor& targets) const override {
    return at::l1_loss(outputs, targets);
  }
};

class Huber final : public ElementLoss {
 public:
  explicit Huber(const LayerSetup& setup) : delta_(setup.attribute("delta", 1)) {}

 private:
  at::Tensor compare(const at::Tensor& outputs, const at::Tensor& targets) const override {
    return at::huber_loss(outputs, targets, at::Reduction::Mean, delta_);
  }

  double delta_;
};

/// With attributes "pos_weight.0", "pos_weight.1", ...: as many as the last dimension has, or one.
class BceWithLogits final : public ElementLoss {
 public:
  explicit BceWithLogits(const LayerSetup& setup) {
    const auto& attributes = setup.config().attributes();
    const auto name = [this] { return "pos_weight." + std::to_string(pos_weight_.size()); };
    for (auto found = attributes.find(name()); found != attributes.end();
         found = attributes.find(name()))
      pos_weight_.push_back(found->second);
  }

 private:
  at::Tensor compare(const at::Tensor& outputs, const at::Tensor& targets) const override {
    return at::binary_cross_entropy_with_logits(outputs, targets, {}, pos_weight_like(outputs));
  }

  /// Undefined where all weights are 1.
  at::Tensor pos_weight_like(const at::Tensor& outputs) const {
    if (pos_weight_.empty()) return {};
    const auto count = static_cast<std::int64_t>(pos_weight_.size());
    TORCH_CHECK(count == 1 || (outputs.dim() != 0 && outputs.size(-1) == count), "pos_weight has ",
                count, " numbers, outputs of shape ", outputs.sizes(), " need one or as many as ",
                "their last dimension");
    const at::Tensor weight = at::empty({count}, at::TensorOptions().dtype(at::kDouble));
    std::copy(pos_weight_.begin(), pos_weight_.end(), weight.data_ptr<double>());
    return weight.to(outputs.device(), outputs.scalar_type());
  }

  std::vector<double> pos_weight_;
};

/// Softmax cross-entropy over the last dimension of the outputs, against class indices, or against
/// class probabilities where the targets are floating-point.
class CrossEntropy final : public LossLayer {
 public:
  explicit CrossEntropy(const LayerSetup& setup)
      : label_smoothing_(setup.attribute("label_smoothing", 0)),
        ignore_index_(static_cast<std::int64_t>(setup.attribute("ignore_index", -100))) {}

  std::uint64_t count_correct(const std::vector<at::Tensor>& inputs) const override {
    const at::Tensor found = inputs[0].argmax(-1);
    const at::Tensor hits = inputs[1].is_floating_point()
                                ? found.eq(inputs[1].argmax(-1))
                                : found.eq(inputs[1]) & inputs[1].ne(ignore_index_);
    return static_cast<std::uint64_t>(hits.sum().item<std::int64_t>());
  }

 private:
  at::Tensor loss(const at::Tensor& outputs, const at::Tensor& targets) const override {
    TORCH_CHECK(outputs.dim() >= 2, "outputs of shape ", outputs.sizes(), " have no classes");
    const at::Tensor rows = outputs.reshape({-1, outputs.size(-1)});
    if (targets.is_floating_point()) return against_probabilities(rows, outputs, targets);
    TORCH_CHECK(targets.sizes() == outputs.sizes().slice(0, outputs.dim() - 1), "targets of shape ",
                targets.sizes(), " do not fit outputs of shape ", outputs.sizes(),
                ", whose last dimension is that of the classes");
    return against_indices(rows, targets.reshape({-1}).to(at::kLong));
  }

  at::Tensor against_probabilities(const at::Tensor& rows, const at::Tensor& outputs,
                                   const at::Tensor& targets) const {
    TORCH_CHECK(targets.sizes() == outputs.sizes(), "class probabilities of shape ",
                targets.sizes(), " do not fit outputs of shape ", outputs.sizes());
    constexpr std::int64_t none = -100;
    return at::cross_entropy_loss(rows, targets.reshape(rows.sizes()).to(rows.scalar_type()), {},
                                  at::Reduction::Mean, none, label_smoothing_);
  }

  at::Tensor against_indices(const at::Tensor& rows, const at::Tensor& targets) const {
    const at::Tensor counts = targets.ne(ignore_index_);
    const at::Tensor wrong = counts & (targets.lt(0) | targets.ge(rows.size(1)));
    if (wrong.any().item<bool>()) {
      const auto index = targets.masked_select(wrong)[0].item<std::int64_t>();
      TORCH_CHECK(false, "class index ", index, " among the targets, but there are ", rows.size(1),
                  " classes");
    }
    // The mean over nothing would be 0/0; the sum is 0 and has gradients of 0.
    const auto reduction = counts.any().item<bool>() ? at::Reduction::Mean : at::Reduction::Sum;
    return at::cross_entropy_loss(rows, targets, {}, reduction, ignore_index_, label_smoothing_);
  }

  double label_smoothing_;
  std::int64_t ignore_index_;
};

template <class Loss>
LayerRegistry::Factory factory_of() {
  return [](const LayerSetup& setup) -> std::unique_ptr<Layer> {
    if constexpr (std::is_constructible_v<Loss, const LayerSetup&>)
      return std::make_unique<Loss>(setup);
    else
      return std::make_unique<Loss>();
  };
}

}  // namespace

Result<void> add_loss_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("loss.mse", factory_of<Mse>()));
  TROUPE_TRY(registry.add("loss.l1", factory_of<L1>()));
  TROUPE_TRY(registry.add("loss.huber", factory_of<Huber>()));
  TROUPE_TRY(registry.add("loss.bce_with_logits", factory_of<BceWithLogits>()));
  return registry.add("loss.cross_entropy", factory_of<CrossEntropy>());
}

}  // namespace troupe::mp::libtorch
