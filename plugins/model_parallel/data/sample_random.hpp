#pragma once

#include <cstdint>

namespace troupe::mp {

/// The random numbers of one sample in one epoch: draw `i` is a function of (seed, epoch, sample,
/// i), whatever batch the sample is in and whatever was drawn before.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);

  /// Uniform on [low, high).
  double uniform(std::uint64_t draw, double low, double high) const;

  /// Uniform on the integers [0, n); n > 0.
  std::uint64_t index(std::uint64_t draw, std::uint64_t n) const;

  /// True with this probability.
  bool chance(std::uint64_t draw, double probability) const;

 private:
  std::uint64_t key_;
};

}  // namespace troupe::mp
