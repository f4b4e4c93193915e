// Layers that leave out something at random in training.
#include "libtorch/dropout.hpp"
#include "libtorch/layers/builtin.hpp"
#include "libtorch/layers/parts.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Attributes: rate.
template <class Operation>
class Regularisation final : public Layer {
 public:
  explicit Regularisation(const LayerSetup& setup)
      : operation_(setup.config().name(), setup.attribute("rate", 0)) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const ForwardContext& context) override {
    return {operation_(only(inputs), context)};
  }

 private:
  Operation operation_;
};

}  // namespace

Result<void> add_regularisation_layers(LayerRegistry& registry) {
  TROUPE_TRY(registry.add("dropout", [](const LayerSetup& setup) {
    return std::make_unique<Regularisation<Dropout>>(setup);
  }));
  return registry.add("drop_path", [](const LayerSetup& setup) {
    return std::make_unique<Regularisation<DropPath>>(setup);
  });
}

}  // namespace troupe::mp::libtorch
