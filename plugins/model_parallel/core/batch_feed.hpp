#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "data/data_source.hpp"

namespace troupe::mp {

/// A batch of a data set, named.
struct BatchRef {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  friend bool operator==(const BatchRef& a, const BatchRef& b) {
    return a.epoch == b.epoch && a.index == b.index;
  }
};

/// What a feed hands out, in order.
struct FeedPlan {
  std::uint64_t samples = 0;  ///< in an epoch; 0: endless
  std::uint32_t batch_size = 1;
  std::uint64_t batches = 0;         ///< how many in all
  std::uint64_t prefetch_bytes = 0;  ///< of batches built and not taken
};

/// Decides which batch is built next and keeps those that were built ahead. One batch is built at
/// a time; another is begun while the built ones and an estimate of it (the size of the last)
/// stay within the budget, and always when none is there; never more than a few.
class BatchFeed {
 public:
  BatchFeed() = default;
  explicit BatchFeed(const FeedPlan& plan) : plan_(plan) {}

  /// The `ordinal`th batch of the feed.
  BatchRef ref(std::uint64_t ordinal) const;

  /// How many samples that batch has.
  std::uint32_t samples_in(std::uint64_t ordinal) const;

  /// How many of the next `wanted` batches, which the feed must have, belong to one epoch.
  std::uint64_t in_one_epoch(std::uint64_t wanted) const;

  /// Which batch to build now, if any; the caller begins it and reports `built`.
  std::optional<BatchRef> begin_build();
  void built(Batch batch);

  bool has_ready() const { return !ready_.empty(); }
  /// The oldest batch that was built; one must be ready.
  Batch take();

  /// Ordinal of the batch that `take` returns next.
  std::uint64_t position() const { return taken_; }
  std::uint64_t remaining() const { return plan_.batches - taken_; }
  std::uint64_t ready_bytes() const { return ready_bytes_; }
  const FeedPlan& plan() const { return plan_; }

 private:
  std::uint64_t batches_in_epoch() const;

  FeedPlan plan_;
  std::uint64_t begun_ = 0;
  std::uint64_t taken_ = 0;
  bool building_ = false;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t ready_bytes_ = 0;
  std::deque<Batch> ready_;
};

/// Bytes of all fields.
std::uint64_t bytes_of(const Batch& batch);

}  // namespace troupe::mp
