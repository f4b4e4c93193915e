#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp {

/// One operation of a stage within a training step.
struct ScheduledOperation {
  bool backward = false;
  std::uint32_t micro_batch = 0;

  friend bool operator==(const ScheduledOperation& a, const ScheduledOperation& b) {
    return a.backward == b.backward && a.micro_batch == b.micro_batch;
  }
};

/// What one stage may do when, within a training step of m micro-batches.
///
/// GPipe (Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
/// Parallelism", 2019): all forwards, then all backwards; a stage holds m micro-batches.
///
/// 1F1B (Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", 2019,
/// with a flush at the end of the step): backward first, else forward while fewer than
/// min(m, p - s) micro-batches are between their forward and their backward on stage s of p.
class StageSchedule {
 public:
  /// `kind` unspecified means 1F1B.
  StageSchedule(v1::Schedule kind, std::uint32_t stage, std::uint32_t stage_count);

  /// Most micro-batches that may be between forward and backward on this stage at once.
  std::uint32_t window(std::uint32_t micro_batches) const;

  /// Whether a forward may start, given how many operations of the step are done.
  bool may_forward(std::uint32_t forwards_done, std::uint32_t backwards_done,
                   std::uint32_t micro_batches) const;

  /// Whether the next backward in order may start.
  bool may_backward(std::uint32_t forwards_done, std::uint32_t backwards_done,
                    std::uint32_t micro_batches) const;

  /// Upper bound of micro-batches whose activations are alive: the window.
  std::uint32_t peak_live_micro_batches(std::uint32_t micro_batches) const {
    return window(micro_batches);
  }

  /// GPipe holds a whole step by definition: what was received counts as live activation then, not
  /// against the sender's credit.
  bool holds_whole_step() const { return kind_ == v1::SCHEDULE_GPIPE; }

  /// The order of operations when every message is there in time.
  std::vector<ScheduledOperation> ideal_order(std::uint32_t micro_batches) const;

 private:
  v1::Schedule kind_;
  std::uint32_t stage_;
  std::uint32_t stage_count_;
};

/// Share of a step in which a stage of an evenly cut pipeline has nothing to do, in [0, 1):
/// (p - 1) / (m + p - 1), the same for GPipe and 1F1B (GPipe, section 2.3).
double ideal_bubble(std::uint32_t stage_count, std::uint32_t micro_batches);

}  // namespace troupe::mp
