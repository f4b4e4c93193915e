#include "core/step_batches.hpp"

#include <algorithm>
#include <limits>

namespace troupe::mp {
namespace {

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

}  // namespace

std::uint64_t StepBatches::steps_in_epoch() const {
  return batches_in_epoch_ / accumulate_ + (batches_in_epoch_ % accumulate_ != 0 ? 1 : 0);
}

std::optional<std::uint64_t> StepBatches::batches_in(std::uint64_t steps) const {
  if (batches_in_epoch_ == 0) return product(steps, accumulate_);
  const auto whole_epochs = product(steps / steps_in_epoch(), batches_in_epoch_);
  if (!whole_epochs) return std::nullopt;
  // Less than an epoch, so it cannot overflow where the epoch did not.
  const std::uint64_t begun = steps % steps_in_epoch() * accumulate_;
  if (begun > std::numeric_limits<std::uint64_t>::max() - *whole_epochs) return std::nullopt;
  return *whole_epochs + begun;
}

}  // namespace troupe::mp
