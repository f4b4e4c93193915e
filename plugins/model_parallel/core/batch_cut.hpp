#pragma once

#include <cstdint>
#include <vector>

namespace troupe::mp {

/// Rows [begin, end) of a batch: one micro-batch.
struct RowRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
};

/// How the samples of one run (a training step, an evaluation, a prediction) are cut: into batches
/// of `batch_size`, each of them into micro-batches of `micro_batch_size`. The last micro-batch of
/// a batch and the last batch of the run may be smaller. No argument may be 0.
class BatchCut {
 public:
  BatchCut() = default;
  BatchCut(std::uint64_t samples, std::uint32_t batch_size, std::uint32_t micro_batch_size);

  std::uint64_t samples() const { return samples_; }
  std::uint64_t batches() const;
  /// Over the whole run.
  std::uint64_t micro_batches() const;
  std::uint32_t samples_in_batch(std::uint64_t batch) const;
  std::uint32_t micro_batches_in_batch(std::uint64_t batch) const;

  /// The batch that micro-batch `index` of the run belongs to, and its rows there.
  std::uint64_t batch_of(std::uint64_t index) const;
  RowRange rows_of(std::uint64_t index) const;

  /// Share of the run's samples: the weight of its loss and gradients.
  double weight_of(std::uint64_t index) const;

 private:
  std::uint32_t micro_batches_in_full_batch() const;

  std::uint64_t samples_ = 0;
  std::uint32_t batch_size_ = 1;
  std::uint32_t micro_batch_size_ = 1;
};

/// What the loss counts in each micro-batch of a run, in order, where that is not known before all
/// of the run's targets are.
class RunCounts {
 public:
  void add(std::uint64_t counted);

  /// How many micro-batches are counted.
  std::uint64_t size() const { return counted_.size(); }
  std::uint64_t counted(std::uint64_t index) const { return counted_[index]; }

  /// Share of all that count in the run: the weight of the micro-batch's loss and gradients. 0 for
  /// each where nothing counts.
  double weight_of(std::uint64_t index) const;

 private:
  std::vector<std::uint64_t> counted_;
  std::uint64_t total_ = 0;
};

}  // namespace troupe::mp
