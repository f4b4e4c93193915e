// Compiled once for each set of vector instructions; the loader chooses.
#include "libtorch/norm_kernels.hpp"

#include <algorithm>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define TROUPE_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TROUPE_VECTORISED
#endif

namespace troupe::mp::libtorch {

TROUPE_VECTORISED
void norm_sums(const NormRows& shape, const float* __restrict x, double* __restrict sum,
               double* __restrict squares) {
  const NormRows s = shape;
  for (std::int64_t row = 0; row < s.rows; ++row, x += s.channels)
    for (std::int64_t c = s.begin; c < s.end; ++c) {
      const double value = x[c];
      sum[c] += value;
      squares[c] += value * value;
    }
}

TROUPE_VECTORISED
void norm_apply(const NormRows& shape, const float* __restrict x, const float* __restrict factor,
                const float* __restrict offset, const float* __restrict addend, bool relu,
                float* __restrict y) {
  const NormRows s = shape;
  for (std::int64_t row = 0; row < s.rows; ++row, x += s.channels, y += s.channels) {
    if (addend != nullptr) {
      for (std::int64_t c = s.begin; c < s.end; ++c)
        y[c] = x[c] * factor[c] + offset[c] + addend[c];
      addend += s.channels;
    } else {
      for (std::int64_t c = s.begin; c < s.end; ++c) y[c] = x[c] * factor[c] + offset[c];
    }
    // The other way round a NaN would become 0.
    if (relu)
      for (std::int64_t c = s.begin; c < s.end; ++c) y[c] = y[c] < 0 ? 0 : y[c];
  }
}

/// The gradient of ReLU. By value: a load that depends on a condition would not be vectorised.
inline float passed(float gradient, float output) { return output <= 0 ? 0 : gradient; }

TROUPE_VECTORISED
void norm_gradient_sums(const NormRows& shape, const float* __restrict dy,
                        const float* __restrict y, const float* __restrict x,
                        const float* __restrict mean, float* __restrict dz, double* __restrict sum,
                        double* __restrict dot) {
  const NormRows s = shape;
  constexpr std::int64_t most = 512;
  float masked[most];
  for (std::int64_t row = 0; row < s.rows; ++row)
    for (std::int64_t begin = s.begin; begin < s.end; begin += most) {
      const std::int64_t count = std::min(most, s.end - begin);
      const std::int64_t at = row * s.channels + begin;
      const float* gradient = dy + at;
      // Apart from the sums: in one loop GCC would branch on the condition.
      if (y != nullptr) {
        float* target = dz != nullptr ? dz + at : masked;
        for (std::int64_t c = 0; c < count; ++c) target[c] = passed(dy[at + c], y[at + c]);
        gradient = target;
      }
      for (std::int64_t c = 0; c < count; ++c) {
        const double value = gradient[c];
        sum[begin + c] += value;
        dot[begin + c] += value * (x[at + c] - mean[begin + c]);
      }
    }
}

TROUPE_VECTORISED
void norm_input_gradient(const NormRows& shape, const float* __restrict dy,
                         const float* __restrict y, const float* __restrict x,
                         const float* __restrict mean, const float* __restrict factor,
                         const float* __restrict sum, const float* __restrict dot,
                         float* __restrict dx) {
  const NormRows s = shape;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const std::int64_t at = row * s.channels;
    if (y != nullptr) {
      for (std::int64_t c = s.begin; c < s.end; ++c) {
        const float gradient = passed(dy[at + c], y[at + c]);
        dx[at + c] = factor[c] * (gradient - sum[c] - (x[at + c] - mean[c]) * dot[c]);
      }
    } else {
      for (std::int64_t c = s.begin; c < s.end; ++c)
        dx[at + c] = factor[c] * (dy[at + c] - sum[c] - (x[at + c] - mean[c]) * dot[c]);
    }
  }
}

}  // namespace troupe::mp::libtorch
