#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/optimizer.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// How long a run is, as far as it is known; 0: not known.
struct RunLength {
  std::uint64_t steps = 0;
  std::uint64_t steps_per_epoch = 0;
};

/// The learning rate at each step: a pure function of the step's number, so that a run that is
/// resumed needs no state of it. Formulas are those of torch.optim.lr_scheduler (1.13) in closed
/// form, with the schedulers of epochs advanced after each epoch and all others after each step.
class LearningRate {
 public:
  /// `full` is the optimizer's or the group's rate. What the schedule leaves open is taken from
  /// `run`; where that does not tell either, and where times contradict each other, it is an error
  /// whose place is `locate` of the field's path within the schedule ("cosine.length").
  static Result<LearningRate> make(double full, const v1::LearningRateSchedule& schedule,
                                   const RunLength& run,
                                   const std::function<std::string(const std::string&)>& locate);

  /// `step` counts from 1, as in keys of messages.
  double at(std::uint64_t step) const;

 private:
  LearningRate(double full, v1::LearningRateSchedule schedule, std::uint64_t steps_per_unit)
      : full_(full), schedule_(std::move(schedule)), steps_per_unit_(steps_per_unit) {}

  double warming_up(double time) const;
  double one_cycle(double time) const;

  double full_;
  v1::LearningRateSchedule schedule_;  ///< with every time filled in
  std::uint64_t steps_per_unit_;
};

}  // namespace troupe::mp
