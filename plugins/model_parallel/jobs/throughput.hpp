#pragma once

#include <cstdint>
#include <string>

namespace troupe::mp {

/// How fast a job goes: total, and a rate for the progress line that follows changes.
class Throughput {
 public:
  void add(std::uint64_t samples, double seconds);

  std::uint64_t samples() const { return samples_; }
  double seconds() const { return seconds_; }
  /// Samples in a second, over everything; 0 before the first step.
  double mean_rate() const { return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0; }
  /// Of late: an exponential mean with a weight of one tenth for the newest step.
  double recent_rate() const { return recent_; }
  /// Seconds for this many more samples at the recent rate.
  double seconds_for(double samples) const { return recent_ > 0 ? samples / recent_ : 0; }

 private:
  std::uint64_t samples_ = 0;
  double seconds_ = 0;
  double recent_ = 0;
};

/// "0:42", "12:05", "1:02:03".
std::string format_duration(double seconds);

}  // namespace troupe::mp
