#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "troupe/api.hpp"

/// Random numbers that depend on a key and a counter alone, never on what was drawn before, so that
/// they are the same wherever and in whatever order they are computed. All functions: any thread.

namespace troupe::mp {

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy
/// as 1, 2, 3", SC 2011).
TROUPE_API std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                               std::uint64_t counter_high);

/// The key of a named stream: (seed, name), mixed.
TROUPE_API std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

/// The key of the random numbers of one sample in one step: those of the stream (seed, name) at
/// (step, sample). Independent of where and in how large pieces samples are computed.
TROUPE_API std::uint64_t sample_key(std::uint64_t seed, std::string_view name, std::uint64_t step,
                                    std::uint64_t sample);

/// Element i is drawn at counter i: uniform on [0, 1), 53 bits.
TROUPE_API double uniform_at(std::uint64_t key, std::uint64_t index);

/// Standard normal, by the Box-Muller transform; elements 2i and 2i + 1 share counter i.
TROUPE_API double normal_at(std::uint64_t key, std::uint64_t index);

}  // namespace troupe::mp
