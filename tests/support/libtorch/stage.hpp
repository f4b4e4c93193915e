#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libtorch/executor.hpp"
#include "libtorch/layer_kinds.hpp"
#include "libtorch/layers/builtin.hpp"

namespace troupe::mp::test {

/// A layer made from a function of its inputs.
class FunctionLayer final : public libtorch::Layer {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Function = Tensors (*)(const Tensors&);

  explicit FunctionLayer(Function function) : function_(function) {}
  Tensors forward(const Tensors& inputs, const libtorch::ForwardContext&) override {
    return function_(inputs);
  }

 private:
  Function function_;
};

/// Kinds of layers that a test adds to the built-in ones.
using Kinds = std::vector<std::pair<std::string, FunctionLayer::Function>>;

inline std::shared_ptr<const libtorch::LayerKinds> layer_registry(const Kinds& kinds = {}) {
  auto registry = std::make_shared<libtorch::LayerKinds>();
  bool added = libtorch::add_builtin_layers(*registry).ok();
  for (const auto& [kind, function] : kinds) {
    added &= registry
                 ->add(kind,
                       [function = function](const libtorch::LayerSetup&) {
                         return std::make_unique<FunctionLayer>(function);
                       })
                 .ok();
  }
  if (!added) throw std::runtime_error("a kind is registered twice");
  return registry;
}

/// An executor on the CPU with the built-in layers; a LocalPipeline::Factory.
inline std::unique_ptr<StageExecutor> libtorch_executor(const v1::StageConfig&) {
  return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), layer_registry());
}

}  // namespace troupe::mp::test
