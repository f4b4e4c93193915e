#pragma once

#include <chrono>

#include "troupe/api.hpp"

namespace troupe {

/// Whether a peer is alive, judged from its silence. Silence grows with each tick of our own
/// clock, but by no more than two intervals a tick: when this process itself was stopped or
/// starved, the time it missed is no evidence against its peers.
class TROUPE_API Liveness {
 public:
  using Duration = std::chrono::nanoseconds;

  Liveness(Duration interval, Duration timeout) : interval_(interval), timeout_(timeout) {}

  /// Any frame is a sign of life.
  void on_sign_of_life() { silence_ = Duration::zero(); }

  /// `elapsed` since the last tick; false once the peer has been silent for the whole timeout.
  bool on_tick(Duration elapsed);

  Duration silence() const { return silence_; }

 private:
  Duration interval_;
  Duration timeout_;
  Duration silence_ = Duration::zero();
};

}  // namespace troupe
