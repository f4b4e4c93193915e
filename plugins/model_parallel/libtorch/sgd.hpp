#pragma once

#include <vector>

#include "libtorch/stage_model.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp::libtorch {

/// Stochastic gradient descent with the operations of torch.optim.SGD (1.13) in its order: weight
/// decay enters the gradient, the momentum buffer begins as the first gradient (not dampened),
/// Nesterov looks ahead by momentum times the buffer. Parameters without a gradient are left alone.
class Sgd {
 public:
  Sgd(const v1::Sgd& config, std::size_t parameters) : config_(config), momentum_(parameters) {}

  /// One step with `lr`; every gradient is multiplied by `scale` first. Modifies the gradients.
  void step(std::vector<StateEntry>& parameters, double lr, double scale);

 private:
  v1::Sgd config_;
  std::vector<at::Tensor> momentum_;  ///< by parameter; undefined before its first step
};

}  // namespace troupe::mp::libtorch
