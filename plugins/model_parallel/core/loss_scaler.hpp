#pragma once

#include <cstdint>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Dynamic loss scaling as torch.cuda.amp.GradScaler (1.13) does it: after an overflow the scale
/// shrinks at once, after a number of steps without one it grows. Powers of two, as by default,
/// change no digit of a gradient.
class LossScaler {
 public:
  /// What the config leaves open takes GradScaler's defaults.
  explicit LossScaler(const v1::LossScaling& config = {});

  double scale() const { return scale_; }
  /// Steps without overflow since the scale last changed.
  std::uint32_t steps_without_overflow() const { return steps_; }

  /// A step is over. It counts as attempted, whether or not it was applied.
  void step_done(bool overflow);

 private:
  double scale_;
  double growth_factor_;
  double backoff_factor_;
  std::uint32_t growth_interval_;
  std::uint32_t steps_ = 0;
};

}  // namespace troupe::mp
