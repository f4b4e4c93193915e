#include "core/seconds.hpp"

#include <algorithm>

namespace troupe {

std::chrono::nanoseconds to_duration(double seconds, std::chrono::nanoseconds otherwise) {
  constexpr std::chrono::duration<double> year = std::chrono::hours(24 * 365);
  // Written so that "not a number" takes the branch.
  if (!(seconds > 0)) return otherwise;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(seconds, year.count())));
}

std::chrono::milliseconds to_milliseconds(double seconds, std::chrono::milliseconds otherwise) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to_duration(seconds, otherwise));
}

}  // namespace troupe
