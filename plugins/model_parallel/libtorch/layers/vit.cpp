// Layers of vision transformers (Dosovitskiy et al., 2020) as torchvision computes them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <c10/util/Exception.h>

#include <string>

#include "libtorch/attention.hpp"
#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Image to tokens: a class token, then one for each patch, with their positions. Attributes:
/// dropout (0).
class VitEmbedding final : public Layer {
 public:
  explicit VitEmbedding(const LayerSetup& setup)
      : patch_(setup.tensor("conv_proj.weight").size(2)),
        convolution_(Convolution(setup.tensor("conv_proj.weight"), {patch_, patch_}, {0, 0}),
                     setup.tensor("conv_proj.bias")),
        class_token_(setup.tensor("class_token")),
        positions_(setup.tensor("encoder.pos_embedding")),
        dropout_(setup.config().name(), setup.attribute("dropout", 0)) {}

  at::MemoryFormat layout() const override { return convolution_.layout(); }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& image = only(inputs);
    const at::Tensor patches = convolution_(image).flatten(2).transpose(1, 2);
    TORCH_CHECK(image.size(2) % patch_ == 0 && image.size(3) % patch_ == 0 &&
                    patches.size(1) + 1 == positions_.size(1),
                "images of ", image.size(2), "x", image.size(3), " do not make the ",
                positions_.size(1) - 1, " patches of ", patch_, "x", patch_,
                " that the model has positions for");
    const at::Tensor tokens = at::cat({class_token_.expand({image.size(0), -1, -1}), patches}, 1);
    return {dropout_(tokens + positions_, context)};
  }

  std::vector<OwnGradient> take_gradients() override { return convolution_.take_gradients(); }
  void discard_gradients() override { convolution_.discard_gradients(); }

 private:
  std::int64_t patch_;
  BiasedConvolution convolution_;
  at::Tensor class_token_;
  at::Tensor positions_;
  Dropout dropout_;
};

/// Attributes: heads, dropout (0), attention_dropout (0), drop_path (0).
class VitBlock final : public Layer {
 public:
  explicit VitBlock(const LayerSetup& setup)
      : attention_{whole_attribute(setup, "heads", 0, 1), /*causal=*/false},
        first_norm_(setup, "ln_1", epsilon),
        projection_(setup.tensor("self_attention.in_proj_weight"),
                    setup.tensor("self_attention.in_proj_bias")),
        attention_output_(setup, "self_attention.out_proj"),
        second_norm_(setup, "ln_2", epsilon),
        hidden_(setup, "mlp.0"),
        output_(setup, "mlp.3"),
        attention_dropout_(setup.config().name() + "/attention",
                           setup.attribute("attention_dropout", 0)),
        first_dropout_(dropout(setup, "self_attention")),
        hidden_dropout_(dropout(setup, "mlp.2")),
        output_dropout_(dropout(setup, "mlp.4")),
        first_path_(drop_path(setup, "self_attention")),
        second_path_(drop_path(setup, "mlp")) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& input = only(inputs);
    const at::Tensor attended =
        attend(projection_(first_norm_(input)), attention_, attention_dropout_, context);
    const at::Tensor x =
        input + first_path_(first_dropout_(attention_output_(attended), context), context);
    const at::Tensor hidden = hidden_dropout_(at::gelu(hidden_(second_norm_(x))), context);
    return {x + second_path_(output_dropout_(output_(hidden), context), context)};
  }

 private:
  static constexpr double epsilon = 1e-6;

  static Dropout dropout(const LayerSetup& setup, const std::string& place) {
    return {setup.config().name() + "/" + place, setup.attribute("dropout", 0)};
  }
  static DropPath drop_path(const LayerSetup& setup, const std::string& place) {
    return {setup.config().name() + "/drop_path." + place, setup.attribute("drop_path", 0)};
  }

  AttentionShape attention_;
  LayerNorm first_norm_;
  LinearMap projection_;
  LinearMap attention_output_;
  LayerNorm second_norm_;
  LinearMap hidden_;
  LinearMap output_;
  Dropout attention_dropout_;
  Dropout first_dropout_;
  Dropout hidden_dropout_;
  Dropout output_dropout_;
  DropPath first_path_;
  DropPath second_path_;
};

/// The classifier, on the class token.
class VitHead final : public Layer {
 public:
  explicit VitHead(const LayerSetup& setup) : classifier_(setup, "head") {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {classifier_(only(inputs).select(1, 0))};
  }

 private:
  LinearMap classifier_;
};

}  // namespace

Result<void> add_vit_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("vit.embedding", [](const LayerSetup& setup) {
    return std::make_unique<VitEmbedding>(setup);
  }));
  TROUPE_TRY(registry.add(
      "vit.block", [](const LayerSetup& setup) { return std::make_unique<VitBlock>(setup); }));
  return registry.add("vit.head",
                      [](const LayerSetup& setup) { return std::make_unique<VitHead>(setup); });
}

}  // namespace troupe::mp::libtorch
