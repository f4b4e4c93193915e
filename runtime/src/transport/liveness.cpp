#include "transport/liveness.hpp"

#include <algorithm>

namespace troupe {

bool Liveness::on_tick(Duration elapsed) {
  silence_ += std::min(elapsed, 2 * interval_);
  return silence_ < timeout_;
}

}  // namespace troupe
