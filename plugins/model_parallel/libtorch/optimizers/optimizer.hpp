#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "libtorch/stage_model.hpp"
#include "troupe/model_parallel/v1/optimizer.pb.h"

namespace troupe::mp::libtorch {

/// Applies gradients to the parameters of one stage. Each kind does the operations of PyTorch's
/// (1.13) optimizer of the same name in the same order, one tensor after the other. What a kind
/// remembers of a parameter begins with the parameter's first gradient; parameters without one are
/// left alone.
///
/// Thread: one at a time. Errors: c10::Error.
class Optimizer {
 public:
  /// For these parameters, in this order from now on.
  static std::unique_ptr<Optimizer> make(const v1::Optimizer& config,
                                         const std::vector<StateEntry>& parameters);
  virtual ~Optimizer();

  /// One step. `lr` has an element for each group of parameters (see optimizer_config.hpp); every
  /// gradient is multiplied by `scale` first. Modifies the gradients.
  void step(std::vector<StateEntry>& parameters, const std::vector<double>& lr, double scale);

 protected:
  /// What holds for one parameter in one step.
  struct Rates {
    double lr = 0;
    double weight_decay = 0;
  };

  /// Changes `parameter`, the `index`th. The gradient is dropped afterwards, so it may be
  /// overwritten where PyTorch copies.
  virtual void update(std::size_t index, const at::Tensor& parameter, const at::Tensor& gradient,
                      const Rates& rates) = 0;

 private:
  std::vector<std::size_t> groups_;    ///< by parameter
  std::vector<double> weight_decays_;  ///< by parameter
};

}  // namespace troupe::mp::libtorch
