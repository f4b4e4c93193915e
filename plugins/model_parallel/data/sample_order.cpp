#include "data/sample_order.hpp"

#include <algorithm>
#include <numeric>

#include "core/random.hpp"

namespace troupe::mp {

SampleOrder::SampleOrder(std::uint64_t samples, bool shuffle, std::uint64_t seed)
    : samples_(samples), shuffle_(shuffle), seed_(seed) {}

Result<std::vector<std::uint64_t>> SampleOrder::batch(std::uint64_t epoch, std::uint64_t index,
                                                      std::uint32_t batch_size) {
  // Divided, not multiplied: index * batch_size may overflow.
  if (batch_size == 0 || samples_ == 0 || index > (samples_ - 1) / batch_size)
    return internal_error("data", "batch " + std::to_string(index) + " of " +
                                      std::to_string(batch_size) + " samples is beyond the " +
                                      std::to_string(samples_) + " samples there are");
  const std::uint64_t first = index * batch_size;
  const std::uint64_t count = std::min<std::uint64_t>(batch_size, samples_ - first);
  std::vector<std::uint64_t> result(count);
  if (!shuffle_) {
    std::iota(result.begin(), result.end(), first);
    return result;
  }
  if (!known_ || epoch_ != epoch) {
    order_ = permutation(stream_key(seed_, "data.order." + std::to_string(epoch)), samples_);
    epoch_ = epoch;
    known_ = true;
  }
  std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(first), count, result.begin());
  return result;
}

}  // namespace troupe::mp
