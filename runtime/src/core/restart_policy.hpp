#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "troupe/api.hpp"

namespace troupe {

/// How often and how fast a failed child is started again: at most `max_restarts` within any
/// `window`, each after a delay that doubles from `first_delay` up to `max_delay` and starts over
/// once a whole window has passed without a failure.
class TROUPE_API RestartPolicy {
 public:
  using Duration = std::chrono::nanoseconds;
  /// Time on any monotonic clock, as the time since a fixed point.
  using Instant = std::chrono::nanoseconds;

  struct Settings {
    int max_restarts = 3;
    Duration window = std::chrono::seconds(60);
    Duration first_delay = std::chrono::milliseconds(100);
    Duration max_delay = std::chrono::seconds(10);
  };

  explicit RestartPolicy(const Settings& settings) : settings_(settings) {}

  /// The child failed at `now`: how long to wait before it is started again, or nothing when the
  /// budget is used up. Instants do not decrease.
  std::optional<Duration> on_failure(Instant now);

 private:
  Settings settings_;
  std::deque<Instant> failures_;  // those within the window
};

}  // namespace troupe
