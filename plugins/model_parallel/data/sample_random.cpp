#include "data/sample_random.hpp"

#include <string>

#include "core/random.hpp"

namespace troupe::mp {

SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample)
    : key_(stream_key(seed,
                      "data.sample." + std::to_string(epoch) + "." + std::to_string(sample))) {}

double SampleRandom::uniform(std::uint64_t draw, double low, double high) const {
  return low + (high - low) * uniform_at(key_, draw);
}

std::uint64_t SampleRandom::index(std::uint64_t draw, std::uint64_t n) const {
  return index_at(key_, draw, n);
}

bool SampleRandom::chance(std::uint64_t draw, double probability) const {
  return uniform_at(key_, draw) < probability;
}

}  // namespace troupe::mp
