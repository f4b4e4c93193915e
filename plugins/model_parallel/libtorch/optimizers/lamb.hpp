#pragma once

#include <cstdint>
#include <vector>

#include "libtorch/optimizers/optimizer.hpp"

namespace troupe::mp::libtorch {

/// Algorithm 2 of You et al., "Large batch optimization for deep learning: training BERT in 76
/// minutes", 2019, whose phi is the identity here. A layer of the paper is a tensor. Norms are
/// summed in double; where one is 0 the step is not scaled.
class Lamb final : public Optimizer {
 public:
  Lamb(const v1::Lamb& config, std::size_t parameters);

 private:
  /// Of one parameter, undefined before its first step.
  struct Moments {
    std::int64_t steps = 0;
    at::Tensor mean;
    at::Tensor square;
  };

  void update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
              const Rates& rates) override;

  double beta1_;
  double beta2_;
  double epsilon_;
  std::vector<Moments> moments_;
};

}  // namespace troupe::mp::libtorch
