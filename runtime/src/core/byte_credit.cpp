#include "core/byte_credit.hpp"

#include <algorithm>

namespace troupe {

bool ByteCredit::admits(std::uint64_t bytes) const {
  if (in_flight_ == 0) return true;
  return in_flight_ <= budget_ && bytes <= budget_ - in_flight_;
}

void ByteCredit::take(std::uint64_t bytes) {
  in_flight_ += bytes;
  peak_ = std::max(peak_, in_flight_);
}

bool ByteCredit::give_back(std::uint64_t bytes) {
  if (bytes > in_flight_) return false;
  in_flight_ -= bytes;
  return true;
}

}  // namespace troupe
