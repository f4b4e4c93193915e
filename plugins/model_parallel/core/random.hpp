#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

namespace troupe::mp {

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy
/// as 1, 2, 3", SC 2011). A number depends only on key and counter, never on what was drawn
/// before, so that it is the same wherever and in whatever order it is computed.
TROUPE_API std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                               std::uint64_t counter_high);

/// The key of a named stream: (seed, name), mixed.
std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

/// Element i is drawn at counter i: uniform on [0, 1), 53 bits.
double uniform_at(std::uint64_t key, std::uint64_t index);

/// Standard normal, by the Box-Muller transform; elements 2i and 2i + 1 share counter i.
double normal_at(std::uint64_t key, std::uint64_t index);

/// Elements [first, first + count) of the same stream: the bits of `normal_at`, at half the cost;
/// rounded from double for float.
void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, float* out);
void fill_normal(std::uint64_t key, std::uint64_t first, std::uint64_t count, double* out);

/// The key of the random numbers of one sample in one step: those of the stream (seed, name) at
/// (step, sample). Independent of where and in how large pieces samples are computed.
TROUPE_API std::uint64_t sample_key(std::uint64_t seed, std::string_view name, std::uint64_t step,
                                    std::uint64_t sample);

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
