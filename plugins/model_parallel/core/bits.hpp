#pragma once

#include <cstdint>
#include <cstring>

namespace troupe::mp {

/// Doubles travel as raw bits, so that NaN, infinities and subnormals survive any codec.
inline std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline double double_from_bits(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace troupe::mp
