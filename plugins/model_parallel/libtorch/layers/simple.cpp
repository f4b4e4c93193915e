// Layers of one operation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// A function of the first input alone.
class Elementwise final : public Layer {
 public:
  using Function = at::Tensor (*)(const at::Tensor&);

  explicit Elementwise(Function function) : function_(function) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {function_(only(inputs))};
  }

 private:
  Function function_;
};

/// y = x W^T + b over the last dimension; the bias is optional.
class Linear final : public Layer {
 public:
  explicit Linear(const LayerSetup& setup) : weight_(setup.tensor("weight")) {
    if (setup.has("bias")) bias_ = setup.tensor("bias");
  }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {at::linear(only(inputs), weight_, bias_)};
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// The normal distribution's cumulative function of x, times x; with the attribute
/// tanh_approximation set to 1 by the formula that GPT-2 was trained with (Hendrycks and Gimpel,
/// 2016).
class Gelu final : public Layer {
 public:
  explicit Gelu(const LayerSetup& setup)
      : approximation_(setup.attribute("tanh_approximation", 0) != 0 ? "tanh" : "none") {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {at::gelu(only(inputs), approximation_)};
  }

 private:
  const char* approximation_;
};

/// The sum of all inputs, which are of one shape, from the first to the last.
class Add final : public Layer {
 public:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    TORCH_CHECK(!inputs.empty(), "a sum of nothing");
    at::Tensor sum;
    for (const at::Tensor& input : inputs) {
      TORCH_CHECK(input.defined(), "an absent value cannot be added");
      // LibTorch would broadcast, silently.
      TORCH_CHECK(input.sizes() == inputs[0].sizes(), "values of shapes ", inputs[0].sizes(),
                  " and ", input.sizes(), " cannot be added");
      sum = sum.defined() ? sum + input : input;
    }
    return {sum};
  }
};

/// Passes every value on, of whatever type, absent ones too.
class Identity final : public Layer {
 public:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return inputs;
  }
};

Result<void> add_elementwise(LayerRegistry& registry, const std::string& kind,
                             Elementwise::Function function) {
  return registry.add(
      kind, [function](const LayerSetup&) { return std::make_unique<Elementwise>(function); });
}

}  // namespace

Result<void> add_simple_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("linear",
                          [](const LayerSetup& setup) { return std::make_unique<Linear>(setup); }));
  TROUPE_TRY(
      registry.add("identity", [](const LayerSetup&) { return std::make_unique<Identity>(); }));
  TROUPE_TRY(registry.add("add", [](const LayerSetup&) { return std::make_unique<Add>(); }));
  TROUPE_TRY(
      registry.add("gelu", [](const LayerSetup& setup) { return std::make_unique<Gelu>(setup); }));
  TROUPE_TRY(add_elementwise(registry, "relu", [](const at::Tensor& x) { return at::relu(x); }));
  TROUPE_TRY(add_elementwise(registry, "tanh", [](const at::Tensor& x) { return at::tanh(x); }));
  return add_elementwise(registry, "flatten",
                         [](const at::Tensor& x) { return at::flatten(x, 1); });
}

}  // namespace troupe::mp::libtorch
