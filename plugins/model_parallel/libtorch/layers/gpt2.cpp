// A block of GPT-2 (Radford et al., 2019) as Hugging Face's GPT2Block computes it.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/gelu.h>

#include <string>

#include "libtorch/attention.hpp"
#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// y = x W + b with W stored as [inputs, outputs].
class Conv1d {
 public:
  Conv1d(const LayerSetup& setup, const std::string& prefix)
      : weight_(setup.tensor(prefix + ".weight")), bias_(setup.tensor(prefix + ".bias")) {}

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor rows = at::addmm(bias_, x.reshape({-1, weight_.size(0)}), weight_);
    return rows.view({x.size(0), x.size(1), weight_.size(1)});
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Attributes: heads, dropout (0).
class Gpt2Block final : public Layer {
 public:
  explicit Gpt2Block(const LayerSetup& setup)
      : attention_{whole_attribute(setup, "heads", 0, 1), /*causal=*/true},
        first_norm_(setup, "ln_1", epsilon),
        projection_(setup, "attn.c_attn"),
        attention_output_(setup, "attn.c_proj"),
        second_norm_(setup, "ln_2", epsilon),
        hidden_(setup, "mlp.c_fc"),
        output_(setup, "mlp.c_proj"),
        attention_dropout_(setup.config().name() + "/attention", setup.attribute("dropout", 0)),
        first_dropout_(setup.config().name() + "/attn", setup.attribute("dropout", 0)),
        second_dropout_(setup.config().name() + "/mlp", setup.attribute("dropout", 0)) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& input = only(inputs);
    const at::Tensor attended =
        attend(projection_(first_norm_(input)), attention_, attention_dropout_, context);
    const at::Tensor x = input + first_dropout_(attention_output_(attended), context);
    const at::Tensor hidden = at::gelu(hidden_(second_norm_(x)), "tanh");
    return {x + second_dropout_(output_(hidden), context)};
  }

 private:
  static constexpr double epsilon = 1e-5;

  AttentionShape attention_;
  LayerNorm first_norm_;
  Conv1d projection_;
  Conv1d attention_output_;
  LayerNorm second_norm_;
  Conv1d hidden_;
  Conv1d output_;
  Dropout attention_dropout_;
  Dropout first_dropout_;
  Dropout second_dropout_;
};

}  // namespace

Result<void> add_gpt2_layers(LayerRegistry& registry) {
  return registry.add("gpt2.block",
                      [](const LayerSetup& setup) { return std::make_unique<Gpt2Block>(setup); });
}

}  // namespace troupe::mp::libtorch
