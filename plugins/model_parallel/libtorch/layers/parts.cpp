#include "libtorch/layers/parts.hpp"

#include <cmath>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>

namespace troupe::mp::libtorch {

namespace {

std::string within(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

const at::Tensor& only(const std::vector<at::Tensor>& inputs) {
  TORCH_CHECK(inputs.size() == 1 && inputs[0].defined(), "expected one input");
  return inputs[0];
}

std::int64_t whole_attribute(const LayerSetup& setup, const std::string& name,
                             std::int64_t fallback, std::int64_t least) {
  const double value = setup.attribute(name, static_cast<double>(fallback));
  TORCH_CHECK(value == std::floor(value) && value >= static_cast<double>(least) && value < 1e9,
              "the attribute '", name, "' is ", value, " and not a whole number from ", least,
              " on");
  return static_cast<std::int64_t>(value);
}

at::MemoryFormat layout_of_convolutions(const at::Tensor& weight) {
  const bool accelerated = weight.is_cpu() && weight.scalar_type() == at::kFloat;
  return accelerated ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

BatchNorm make_batch_norm(const LayerSetup& setup, const std::string& prefix) {
  const auto tensor = [&](const char* name) { return setup.tensor(within(prefix, name)); };
  return BatchNorm(tensor("weight"), tensor("bias"), tensor("running_mean"), tensor("running_var"),
                   tensor("num_batches_tracked"));
}

LinearMap::LinearMap(const LayerSetup& setup, const std::string& prefix)
    : LinearMap(setup.tensor(prefix + ".weight"), setup.tensor(prefix + ".bias")) {}

at::Tensor LinearMap::operator()(const at::Tensor& x) const {
  return at::linear(x, weight_, bias_);
}

LayerNorm::LayerNorm(const LayerSetup& setup, const std::string& prefix, double epsilon)
    : weight_(setup.tensor(within(prefix, "weight"))),
      bias_(setup.tensor(within(prefix, "bias"))),
      epsilon_(epsilon) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, weight_.sizes(), weight_, bias_, epsilon_);
}

at::Tensor BiasedConvolution::operator()(const at::Tensor& x) const {
  const at::Tensor y = convolution_.forward(x);
  return bias_.defined() ? y + bias_.view({1, -1, 1, 1}) : y;
}

std::vector<Layer::OwnGradient> BiasedConvolution::take_gradients() {
  std::vector<Layer::OwnGradient> gradients;
  take_gradient(convolution_, gradients);
  return gradients;
}

void take_gradient(Convolution& convolution, std::vector<Layer::OwnGradient>& gradients) {
  at::Tensor gradient = convolution.take_gradient();
  if (gradient.defined()) gradients.push_back({convolution.weight(), std::move(gradient)});
}

}  // namespace troupe::mp::libtorch
