#include "libtorch/optimizers/adam.hpp"

#include <cmath>

#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>

namespace troupe::mp::libtorch {
namespace {

template <class Config>
Adam::Settings settings_of(const Config& config, bool decoupled) {
  return {config.has_beta1() ? config.beta1() : 0.9, config.has_beta2() ? config.beta2() : 0.999,
          config.has_epsilon() ? config.epsilon() : 1e-8, config.amsgrad(), decoupled};
}

}  // namespace

Adam::Settings Adam::settings(const v1::Adam& config) { return settings_of(config, false); }
Adam::Settings Adam::settings(const v1::AdamW& config) { return settings_of(config, true); }

void Adam::update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
                  const Rates& rates) {
  Moments& m = moments_[index];
  if (!m.mean.defined()) {
    m.mean = at::zeros_like(parameter);
    m.square = at::zeros_like(parameter);
    if (settings_.amsgrad) m.largest_square = at::zeros_like(parameter);
  }
  ++m.steps;
  if (settings_.decoupled)
    parameter.mul_(1 - rates.lr * rates.weight_decay);
  else if (rates.weight_decay != 0)
    gradient.add_(parameter, rates.weight_decay);
  m.mean.mul_(settings_.beta1).add_(gradient, 1 - settings_.beta1);
  m.square.mul_(settings_.beta2).addcmul_(gradient, gradient, 1 - settings_.beta2);
  if (settings_.amsgrad) at::maximum_out(m.largest_square, m.largest_square, m.square);
  const auto steps = static_cast<double>(m.steps);
  const double mean_correction = 1 - std::pow(settings_.beta1, steps);
  const double square_correction = std::sqrt(1 - std::pow(settings_.beta2, steps));
  const at::Tensor& square = settings_.amsgrad ? m.largest_square : m.square;
  const at::Tensor denominator = square.sqrt().div_(square_correction).add_(settings_.epsilon);
  parameter.addcdiv_(m.mean, denominator, -rates.lr / mean_correction);
}

}  // namespace troupe::mp::libtorch
