#pragma once

#include <vector>

#include "libtorch/optimizers/optimizer.hpp"

namespace troupe::mp::libtorch {

/// torch.optim.RMSprop.
class RmsProp final : public Optimizer {
 public:
  RmsProp(const v1::RmsProp& config, std::size_t parameters);

 private:
  /// Of one parameter, undefined before its first step.
  struct Averages {
    at::Tensor square;
    at::Tensor mean;      ///< centered only
    at::Tensor momentum;  ///< with momentum only
  };

  void update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
              const Rates& rates) override;

  double alpha_;
  double epsilon_;
  double momentum_;
  bool centered_;
  std::vector<Averages> averages_;
};

}  // namespace troupe::mp::libtorch
