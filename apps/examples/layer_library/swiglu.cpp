#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include "example_layers.hpp"

namespace example_layers {
namespace {

using troupe::mp::libtorch::ForwardContext;
using troupe::mp::libtorch::Layer;
using troupe::mp::libtorch::LayerSetup;

class SwiGlu final : public Layer {
 public:
  explicit SwiGlu(const LayerSetup& setup)
      : w1_(setup.tensor("w1.weight")),
        w2_(setup.tensor("w2.weight")),
        w3_(setup.tensor("w3.weight")) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    TORCH_CHECK(inputs.size() == 1 && inputs[0].defined(), "expected one input");
    const at::Tensor& x = inputs[0];
    return {at::linear(at::silu(at::linear(x, w1_)) * at::linear(x, w3_), w2_)};
  }

 private:
  at::Tensor w1_;
  at::Tensor w2_;
  at::Tensor w3_;
};

}  // namespace

troupe::Result<void> add_swiglu(troupe::mp::libtorch::LayerRegistry& registry) {
  return registry.add("swiglu",
                      [](const LayerSetup& setup) { return std::make_unique<SwiGlu>(setup); });
}

}  // namespace example_layers
