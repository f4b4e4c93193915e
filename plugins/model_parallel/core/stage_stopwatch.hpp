#pragma once

#include <chrono>
#include <optional>

namespace troupe::mp {

/// Splits a stage's time, from the first operation of a run of them on, into computing (what the
/// executor measured), waiting (no operation could start because a message was missing) and
/// transfer (the rest: handing operations over, packing and sending what they produced).
class StageStopwatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Seconds {
    double compute = 0;
    double waiting = 0;
    double transfer = 0;
  };

  void operation_starts(TimePoint now);
  /// The operation is over; what follows until `settled` is transfer.
  void operation_ends(TimePoint now, double compute_seconds);
  /// Everything the operation produced has been handed on.
  void settled(TimePoint now);

  /// What follows until the next operation starts is nobody's time: the stage moves state, or waits
  /// for a run to begin.
  void pause() { since_.reset(); }

  /// Since the last call.
  Seconds take();

 private:
  double lap(TimePoint now);

  std::optional<TimePoint> since_;
  Seconds seconds_;
};

}  // namespace troupe::mp
