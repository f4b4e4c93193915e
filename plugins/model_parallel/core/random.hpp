#pragma once

#include <cstdint>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/random.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

namespace troupe::mp {

/// Elements [first, first + count) of the same stream: the bits of `normal_at`, at half the cost;
/// rounded from double for float.
void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, float* out);
void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, double* out);

/// Normal of mean 0 and this standard deviation, given that it is within [-bound, bound], by
/// rejection; both positive.
double truncated_normal_at(std::uint64_t key, std::uint64_t index, double std, double bound);

/// Uniform on the integers [0, n); n > 0.
std::uint64_t index_at(std::uint64_t key, std::uint64_t index, std::uint64_t n);

/// A permutation of [0, n) (Fisher-Yates), the order of an epoch.
std::vector<std::uint64_t> permutation(std::uint64_t key, std::uint64_t n);

/// The initial tensor of a parameter, keyed by (seed, parameter name), for a tied one by the name
/// of its owner; computed in double and rounded to `dtype`, which is float32 or float64 (int64 for
/// integer buffers). Without `init`: zeros. The parameter's shape must have passed `element_count`.
TROUPE_API HostTensor initial_tensor(const v1::Parameter& parameter, std::uint64_t seed,
                                     v1::DType dtype);

}  // namespace troupe::mp
