#pragma once

#include <chrono>

#include "troupe/api.hpp"

namespace troupe {

/// A number of seconds, as files and messages hold it, as a duration; `otherwise` unless it is
/// above zero, and at most a year: any double is safe, also one that a stranger sent.
TROUPE_API std::chrono::nanoseconds to_duration(double seconds, std::chrono::nanoseconds otherwise);
TROUPE_API std::chrono::milliseconds to_milliseconds(double seconds,
                                                     std::chrono::milliseconds otherwise);

}  // namespace troupe
