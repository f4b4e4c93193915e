#pragma once

#include <cstdint>

namespace troupe::mp::libtorch {

/// Rows of `channels` floats: a channels-last tensor, whose rows are its pixels. The kernels below
/// work on the channels [begin, end) of all rows, and on those elements of arrays with one element
/// a channel.
struct NormRows {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t begin;
  std::int64_t end;
};

/// sum += x, squares += x^2.
void norm_sums(const NormRows& shape, const float* x, double* sum, double* squares);

/// y = x * factor + offset (+ addend, if it is not null), and no less than 0 if `relu`.
void norm_apply(const NormRows& shape, const float* x, const float* factor, const float* offset,
                const float* addend, bool relu, float* y);

/// With dz = dy, or 0 where `y` is not null and not above 0: sum += dz and
/// dot += dz * (x - mean). Writes dz if neither it nor `y` is null.
void norm_gradient_sums(const NormRows& shape, const float* dy, const float* y, const float* x,
                        const float* mean, float* dz, double* sum, double* dot);

/// dx = factor * (dz - sum - (x - mean) * dot), with dz as above.
void norm_input_gradient(const NormRows& shape, const float* dy, const float* y, const float* x,
                         const float* mean, const float* factor, const float* sum, const float* dot,
                         float* dx);

}  // namespace troupe::mp::libtorch
