#include "jobs/throughput.hpp"

#include <cmath>

#include <fmt/format.h>

namespace troupe::mp {

void Throughput::add(std::uint64_t samples, double seconds) {
  samples_ += samples;
  seconds_ += seconds;
  if (seconds <= 0) return;
  const double rate = static_cast<double>(samples) / seconds;
  recent_ = recent_ == 0 ? rate : 0.9 * recent_ + 0.1 * rate;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace troupe::mp
