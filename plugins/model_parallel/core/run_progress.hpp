#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// What the loss layer said of a whole run.
struct LossTotals {
  double loss = 0;  ///< mean over all that count; 0 where nothing does
  std::uint64_t samples = 0;
  std::uint64_t counted = 0;  ///< samples, or targets that are not ignored
  std::uint64_t correct = 0;  ///< of those that count: the highest output is the target

  /// As if the other run had been part of this one.
  void add(const LossTotals& other);
};

/// How far a run (a training step, an evaluation, a prediction) is: which micro-batches the
/// pipeline has admitted and which are through. At most `window` micro-batches are between
/// admission and the moment the last stage that works on them is done.
class RunProgress {
 public:
  RunProgress() = default;
  RunProgress(std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t window);

  std::uint32_t micro_batches() const { return static_cast<std::uint32_t>(done_by_.size()); }

  /// The next micro-batch, if the window allows one more. [life:2]
  std::optional<std::uint32_t> admit();

  /// A stage has finished all its work on a micro-batch.
  Result<void> stage_done(std::uint32_t stage, std::uint32_t micro_batch);

  Result<void> add_loss(std::uint32_t micro_batch, const v1::LossReport& report);

  /// All stages are done with all micro-batches.
  bool all_done() const { return finished_ == done_by_.size(); }
  bool has_all_losses() const { return losses_seen_ == losses_.size(); }
  std::uint32_t in_flight() const { return admitted_ - finished_; }

  /// Sums in micro-batch order, so that the result does not depend on the order of arrival.
  LossTotals loss_totals() const;

 private:
  std::uint32_t stages_ = 0;
  std::uint32_t window_ = 1;
  std::uint32_t admitted_ = 0;
  std::uint32_t finished_ = 0;
  std::uint32_t losses_seen_ = 0;
  std::vector<std::vector<bool>> done_by_;  // [micro-batch][stage]
  std::vector<std::optional<v1::LossReport>> losses_;
};

}  // namespace troupe::mp
