#include "libtorch/optimizers/lamb.hpp"

#include <cmath>

#include <ATen/ops/zeros_like.h>

#include "libtorch/gradient_norm.hpp"

namespace troupe::mp::libtorch {

Lamb::Lamb(const v1::Lamb& config, std::size_t parameters)
    : beta1_(config.has_beta1() ? config.beta1() : 0.9),
      beta2_(config.has_beta2() ? config.beta2() : 0.999),
      epsilon_(config.has_epsilon() ? config.epsilon() : 1e-6),
      moments_(parameters) {}

void Lamb::update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
                  const Rates& rates) {
  Moments& m = moments_[index];
  if (!m.mean.defined()) {
    m.mean = at::zeros_like(parameter);
    m.square = at::zeros_like(parameter);
  }
  const auto steps = static_cast<double>(++m.steps);
  m.mean.mul_(beta1_).add_(gradient, 1 - beta1_);
  m.square.mul_(beta2_).addcmul_(gradient, gradient, 1 - beta2_);
  const at::Tensor denominator = m.square.div(1 - std::pow(beta2_, steps)).sqrt_().add_(epsilon_);
  const at::Tensor step = m.mean.div(1 - std::pow(beta1_, steps)).div_(denominator);
  if (rates.weight_decay != 0) step.add_(parameter, rates.weight_decay);
  const double parameter_norm = std::sqrt(squared_norm(parameter).value);
  const double step_norm = std::sqrt(squared_norm(step).value);
  const double trust = parameter_norm > 0 && step_norm > 0 ? parameter_norm / step_norm : 1;
  parameter.add_(step, -rates.lr * trust);
}

}  // namespace troupe::mp::libtorch
