#include "libtorch/optimizers/rmsprop.hpp"

#include <ATen/ops/zeros_like.h>

namespace troupe::mp::libtorch {

RmsProp::RmsProp(const v1::RmsProp& config, std::size_t parameters)
    : alpha_(config.has_alpha() ? config.alpha() : 0.99),
      epsilon_(config.has_epsilon() ? config.epsilon() : 1e-8),
      momentum_(config.momentum()),
      centered_(config.centered()),
      averages_(parameters) {}

void RmsProp::update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
                     const Rates& rates) {
  Averages& a = averages_[index];
  if (!a.square.defined()) {
    a.square = at::zeros_like(parameter);
    if (centered_) a.mean = at::zeros_like(parameter);
    if (momentum_ > 0) a.momentum = at::zeros_like(parameter);
  }
  if (rates.weight_decay != 0) gradient.add_(parameter, rates.weight_decay);
  a.square.mul_(alpha_).addcmul_(gradient, gradient, 1 - alpha_);
  if (centered_) a.mean.mul_(alpha_).add_(gradient, 1 - alpha_);
  const at::Tensor variance = centered_ ? a.square.addcmul(a.mean, a.mean, -1) : a.square;
  const at::Tensor deviation = variance.sqrt().add_(epsilon_);
  if (momentum_ > 0)
    parameter.add_(a.momentum.mul_(momentum_).addcdiv_(gradient, deviation), -rates.lr);
  else
    parameter.addcdiv_(gradient, deviation, -rates.lr);
}

}  // namespace troupe::mp::libtorch
