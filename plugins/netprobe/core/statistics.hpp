#pragma once

#include <vector>

namespace troupe::netprobe {

/// The middle value, or the mean of the two middle ones; 0 of nothing. One late message, which
/// every network has, does not move it.
double median(std::vector<double> values);

}  // namespace troupe::netprobe
