#include "libtorch/optimizers/sgd.hpp"

namespace troupe::mp::libtorch {

void Sgd::update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
                 const Rates& rates) {
  if (rates.weight_decay != 0) gradient.add_(parameter, rates.weight_decay);
  if (config_.momentum() == 0) {
    parameter.add_(gradient, -rates.lr);
    return;
  }
  at::Tensor& buffer = momentum_[index];
  if (buffer.defined())
    buffer.mul_(config_.momentum()).add_(gradient, 1 - config_.dampening());
  else
    buffer = gradient.clone();
  if (config_.nesterov())
    parameter.add_(gradient.add_(buffer, config_.momentum()), -rates.lr);
  else
    parameter.add_(buffer, -rates.lr);
}

}  // namespace troupe::mp::libtorch
