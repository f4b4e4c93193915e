#pragma once

#include <cstdint>
#include <vector>

#include "troupe/result.hpp"

namespace troupe::mp {

/// Which samples make up a batch: file order, or a permutation drawn from (seed, epoch). A pure
/// function of its arguments; the last epoch's permutation is kept.
class SampleOrder {
 public:
  SampleOrder(std::uint64_t samples, bool shuffle, std::uint64_t seed);

  std::uint64_t samples() const { return samples_; }
  bool shuffled() const { return shuffle_; }

  /// The samples of batch `index`, fewer than `batch_size` at the end of the epoch. A batch beyond
  /// the end is an internal error.
  Result<std::vector<std::uint64_t>> batch(std::uint64_t epoch, std::uint64_t index,
                                           std::uint32_t batch_size);

 private:
  std::uint64_t samples_;
  bool shuffle_;
  std::uint64_t seed_;
  bool known_ = false;  ///< order_ is that of epoch_
  std::uint64_t epoch_ = 0;
  std::vector<std::uint64_t> order_;
};

}  // namespace troupe::mp
