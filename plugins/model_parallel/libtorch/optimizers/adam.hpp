#pragma once

#include <cstdint>
#include <vector>

#include "libtorch/optimizers/optimizer.hpp"

namespace troupe::mp::libtorch {

/// torch.optim.Adam and torch.optim.AdamW, which differ in where the weight decay enters.
class Adam final : public Optimizer {
 public:
  struct Settings {
    double beta1 = 0;
    double beta2 = 0;
    double epsilon = 0;
    bool amsgrad = false;
    bool decoupled = false;  ///< AdamW: the decay shrinks the weights, not the gradient
  };
  static Settings settings(const v1::Adam& config);
  static Settings settings(const v1::AdamW& config);

  Adam(const Settings& settings, std::size_t parameters)
      : settings_(settings), moments_(parameters) {}

 private:
  /// Of one parameter, undefined before its first step.
  struct Moments {
    std::int64_t steps = 0;
    at::Tensor mean;
    at::Tensor square;
    at::Tensor largest_square;  ///< amsgrad only
  };

  void update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
              const Rates& rates) override;

  Settings settings_;
  std::vector<Moments> moments_;
};

}  // namespace troupe::mp::libtorch
