#pragma once

#include <cstdint>

namespace troupe::mp::libtorch {

/// Elements are decided in blocks of this many, each from 16 Philox counters.
inline constexpr std::int64_t dropout_block = 64;

/// Which elements of a sample stay, and what they are multiplied with.
struct DropoutDraw {
  std::uint64_t key = 0;        ///< of the sample (sample_key)
  std::uint32_t threshold = 0;  ///< an element is dropped if its random word is below this
  double scale = 1;
};

/// y[i] = scale * x[i] or 0, for the elements [begin, end) of a sample; `begin` is a multiple of
/// dropout_block. `x` and `y` are the sample's first elements and may be the same.
///
/// The random word of element e is word (e % 64) / 16 of Philox at the counter
/// 16 * (e / 64) + e % 16, so that neighbours are drawn side by side in a vector register.
void drop_elements(const DropoutDraw& draw, std::int64_t begin, std::int64_t end, const float* x,
                   float* y);
void drop_elements(const DropoutDraw& draw, std::int64_t begin, std::int64_t end, const double* x,
                   double* y);

}  // namespace troupe::mp::libtorch
