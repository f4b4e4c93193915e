#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Gathers the stages' reports of one step and adds up the global gradient norm. The sum runs over
/// parameters in the model's order, so that its bits do not depend on the cut or on who reported
/// first.
class GradientNorm {
 public:
  explicit GradientNorm(std::uint32_t stages = 0) : reports_(stages) {}

  /// A second report of the same stage, or one of an unknown stage, is an error.
  Result<void> add(const v1::StepReport& report);

  bool complete() const { return seen_ == reports_.size(); }

  /// 2-norm of all gradients; for a complete set.
  double norm() const;

  /// Whether every gradient is finite; for a complete set.
  bool finite() const;
  /// Index, in the model's order, of the first parameter with a non-finite gradient, if the
  /// norms tell.
  std::optional<std::uint32_t> first_non_finite() const;

  std::vector<v1::StageTimes> times() const;

 private:
  std::vector<const v1::StepReport*> in_model_order() const;

  std::vector<std::optional<v1::StepReport>> reports_;  // by stage
  std::size_t seen_ = 0;
};

/// Factor that brings a gradient of norm `norm` down to `max_norm`, as
/// torch.nn.utils.clip_grad_norm_ (1.13) defines it: max_norm / (norm + 1e-6), at most 1; exactly
/// 1 when `max_norm` is 0 (clipping off).
double clip_factor(double norm, double max_norm);

}  // namespace troupe::mp
