#pragma once

#include <cstdint>
#include <optional>

namespace troupe::mp {

/// How batches make up training steps: `accumulate` (at least 1) in each, but a step ends with an
/// epoch, so that the last one of an epoch has those that are left. Which batches a step trains on
/// is a function of its number alone.
class StepBatches {
 public:
  /// `batches_in_epoch` is 0 for data without an end.
  StepBatches(std::uint64_t batches_in_epoch, std::uint32_t accumulate)
      : batches_in_epoch_(batches_in_epoch), accumulate_(accumulate) {}

  /// 0 for data without an end.
  std::uint64_t steps_in_epoch() const;

  /// Batches in the first `steps` steps; none when they are more than can be counted.
  std::optional<std::uint64_t> batches_in(std::uint64_t steps) const;

 private:
  std::uint64_t batches_in_epoch_;
  std::uint32_t accumulate_;
};

}  // namespace troupe::mp
