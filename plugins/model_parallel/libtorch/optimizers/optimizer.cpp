#include "libtorch/optimizers/optimizer.hpp"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "core/optimizer_config.hpp"
#include "libtorch/optimizers/adam.hpp"
#include "libtorch/optimizers/lamb.hpp"
#include "libtorch/optimizers/rmsprop.hpp"
#include "libtorch/optimizers/sgd.hpp"

namespace troupe::mp::libtorch {
namespace {

std::unique_ptr<Optimizer> make_kind(const v1::Optimizer& config, std::size_t parameters) {
  switch (config.kind_case()) {
    case v1::Optimizer::kSgd: return std::make_unique<Sgd>(config.sgd(), parameters);
    case v1::Optimizer::kAdam:
      return std::make_unique<Adam>(Adam::settings(config.adam()), parameters);
    case v1::Optimizer::kAdamw:
      return std::make_unique<Adam>(Adam::settings(config.adamw()), parameters);
    case v1::Optimizer::kRmsprop: return std::make_unique<RmsProp>(config.rmsprop(), parameters);
    case v1::Optimizer::kLamb: return std::make_unique<Lamb>(config.lamb(), parameters);
    case v1::Optimizer::KIND_NOT_SET: break;
  }
  TORCH_CHECK(false, "an optimizer of unknown kind");
}

}  // namespace

Optimizer::~Optimizer() = default;

std::unique_ptr<Optimizer> Optimizer::make(const v1::Optimizer& config,
                                           const std::vector<StateEntry>& parameters) {
  auto optimizer = make_kind(config, parameters.size());
  for (const auto& parameter : parameters) {
    const std::size_t group = group_of(config, parameter.name);
    optimizer->groups_.push_back(group);
    optimizer->weight_decays_.push_back(weight_decay_of(config, group));
  }
  return optimizer;
}

void Optimizer::step(std::vector<StateEntry>& parameters, const std::vector<double>& lr,
                     double scale) {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& gradient = parameters[i].whole_gradient();
    if (!gradient.defined() || parameters[i].tied) continue;
    if (scale != 1) gradient.mul_(scale);
    update(i, parameters[i].tensor, gradient, {lr.at(groups_[i]), weight_decays_[i]});
  }
}

}  // namespace troupe::mp::libtorch
