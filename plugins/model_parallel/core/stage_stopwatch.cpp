#include "core/stage_stopwatch.hpp"

#include <algorithm>
#include <utility>

namespace troupe::mp {

double StageStopwatch::lap(TimePoint now) {
  const std::chrono::duration<double> elapsed = since_ ? now - *since_ : TimePoint::duration{};
  since_ = now;
  return elapsed.count();
}

void StageStopwatch::operation_starts(TimePoint now) { seconds_.waiting += lap(now); }

void StageStopwatch::operation_ends(TimePoint now, double compute_seconds) {
  seconds_.compute += compute_seconds;
  seconds_.transfer += std::max(0.0, lap(now) - compute_seconds);
}

void StageStopwatch::settled(TimePoint now) { seconds_.transfer += lap(now); }

StageStopwatch::Seconds StageStopwatch::take() { return std::exchange(seconds_, Seconds{}); }

}  // namespace troupe::mp
