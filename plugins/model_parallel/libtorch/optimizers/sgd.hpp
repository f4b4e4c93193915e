#pragma once

#include <vector>

#include "libtorch/optimizers/optimizer.hpp"

namespace troupe::mp::libtorch {

/// torch.optim.SGD: weight decay enters the gradient, the momentum buffer begins as the first
/// gradient (not dampened), Nesterov looks ahead by momentum times the buffer.
class Sgd final : public Optimizer {
 public:
  Sgd(const v1::Sgd& config, std::size_t parameters) : config_(config), momentum_(parameters) {}

 private:
  void update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
              const Rates& rates) override;

  v1::Sgd config_;
  std::vector<at::Tensor> momentum_;  ///< by parameter; undefined before its first step
};

}  // namespace troupe::mp::libtorch
