// Layers of one operation.
#include <ATen/ops/flatten.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include "libtorch/layers/builtin.hpp"

namespace troupe::mp::libtorch {
namespace {

/// A function of the first input alone.
class Elementwise final : public Layer {
 public:
  using Function = at::Tensor (*)(const at::Tensor&);

  explicit Elementwise(Function function) : function_(function) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    TORCH_CHECK(inputs.size() == 1 && inputs[0].defined(), "expected one input");
    return {function_(inputs[0])};
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
    TORCH_CHECK(inputs.size() == 1 && inputs[0].defined(), "expected one input");
    return {at::linear(inputs[0], weight_, bias_)};
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
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
  TROUPE_TRY(add_elementwise(registry, "relu", [](const at::Tensor& x) { return at::relu(x); }));
  TROUPE_TRY(add_elementwise(registry, "tanh", [](const at::Tensor& x) { return at::tanh(x); }));
  return add_elementwise(registry, "flatten",
                         [](const at::Tensor& x) { return at::flatten(x, 1); });
}

}  // namespace troupe::mp::libtorch
