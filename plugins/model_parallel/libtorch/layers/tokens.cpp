// Layers on sequences of tokens (samples, positions, features).
#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <c10/util/Exception.h>

#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// A row of the weight for each token id. On the CPU the backward adds the gradients of equal
/// tokens in the order of their positions.
class Embedding final : public Layer {
 public:
  explicit Embedding(const LayerSetup& setup) : weight_(setup.tensor("weight")) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& ids = only(inputs);
    TORCH_CHECK(c10::isIntegralType(ids.scalar_type(), /*includeBool=*/false), "token ids of type ",
                ids.scalar_type(), " instead of integers");
    return {at::embedding(weight_, ids.to(at::kLong))};
  }

 private:
  at::Tensor weight_;
};

/// Adds row p of the weight at position p.
class PositionEmbedding final : public Layer {
 public:
  explicit PositionEmbedding(const LayerSetup& setup) : weight_(setup.tensor("weight")) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& x = only(inputs);
    TORCH_CHECK(x.dim() == 3 && x.size(2) == weight_.size(1), "a value of shape ", x.sizes(),
                " instead of (samples, positions, ", weight_.size(1), ")");
    TORCH_CHECK(x.size(1) <= weight_.size(0), x.size(1),
                " positions in a sample, but embeddings for ", weight_.size(0));
    return {x + weight_.slice(0, 0, x.size(1))};
  }

 private:
  at::Tensor weight_;
};

/// Attributes: epsilon (1e-5).
class LayerNormLayer final : public Layer {
 public:
  explicit LayerNormLayer(const LayerSetup& setup)
      : norm_(setup, "", setup.attribute("epsilon", 1e-5)) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {norm_(only(inputs))};
  }

 private:
  LayerNorm norm_;
};

/// The last position of each sample, as a sequence of one.
class LastPosition final : public Layer {
 public:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    const at::Tensor& x = only(inputs);
    TORCH_CHECK(x.dim() >= 2 && x.size(1) > 0, "a value of shape ", x.sizes(), " has no positions");
    return {x.slice(1, x.size(1) - 1)};
  }
};

}  // namespace

Result<void> add_token_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add(
      "embedding", [](const LayerSetup& setup) { return std::make_unique<Embedding>(setup); }));
  TROUPE_TRY(registry.add("position_embedding", [](const LayerSetup& setup) {
    return std::make_unique<PositionEmbedding>(setup);
  }));
  TROUPE_TRY(registry.add("last_position",
                          [](const LayerSetup&) { return std::make_unique<LastPosition>(); }));
  return registry.add("layer_norm", [](const LayerSetup& setup) {
    return std::make_unique<LayerNormLayer>(setup);
  });
}

}  // namespace troupe::mp::libtorch
