#include "libtorch/sgd.hpp"

#include <c10/core/GradMode.h>

namespace troupe::mp::libtorch {

void Sgd::step(std::vector<StateEntry>& parameters, double lr, double scale) {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor direction = parameters[i].gradient;
    if (!direction.defined()) continue;
    if (scale != 1) direction.mul_(scale);
    // The gradient is dropped after the step, so it may be overwritten where PyTorch copies.
    if (config_.weight_decay() != 0) direction.add_(parameters[i].tensor, config_.weight_decay());
    if (config_.momentum() != 0) {
      at::Tensor& buffer = momentum_[i];
      if (buffer.defined())
        buffer.mul_(config_.momentum()).add_(direction, 1 - config_.dampening());
      else
        buffer = direction.clone();
      if (config_.nesterov())
        direction.add_(buffer, config_.momentum());
      else
        direction = buffer;
    }
    parameters[i].tensor.add_(direction, -lr);
  }
}

}  // namespace troupe::mp::libtorch
