#include "core/batch_feed.hpp"

#include <algorithm>
#include <utility>

namespace troupe::mp {
namespace {

/// Enough for whatever delays a build; small batches would otherwise fill the whole budget, and
/// take the processor from the first steps.
constexpr std::size_t most_batches_ahead = 16;

}  // namespace

std::uint64_t bytes_of(const Batch& batch) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : batch.fields) bytes += tensor.data.size();
  return bytes;
}

BatchRef BatchFeed::ref(std::uint64_t ordinal) const {
  if (plan_.samples == 0) return {0, ordinal};
  return {ordinal / batches_in_epoch(), ordinal % batches_in_epoch()};
}

std::uint64_t BatchFeed::batches_in_epoch() const {
  return (plan_.samples + plan_.batch_size - 1) / plan_.batch_size;
}

std::uint64_t BatchFeed::in_one_epoch(std::uint64_t wanted) const {
  if (plan_.samples == 0) return wanted;
  return std::min(wanted, batches_in_epoch() - ref(taken_).index);
}

std::uint32_t BatchFeed::samples_in(std::uint64_t ordinal) const {
  if (plan_.samples == 0) return plan_.batch_size;
  const std::uint64_t before = ref(ordinal).index * plan_.batch_size;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(plan_.batch_size, plan_.samples - before));
}

std::optional<BatchRef> BatchFeed::begin_build() {
  if (building_ || begun_ == plan_.batches) return std::nullopt;
  if (ready_.size() >= most_batches_ahead) return std::nullopt;
  if (has_ready() && ready_bytes_ + last_bytes_ > plan_.prefetch_bytes) return std::nullopt;
  building_ = true;
  return ref(begun_++);
}

void BatchFeed::built(Batch batch) {
  building_ = false;
  last_bytes_ = bytes_of(batch);
  ready_bytes_ += last_bytes_;
  ready_.push_back(std::move(batch));
}

Batch BatchFeed::take() {
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  ready_bytes_ -= bytes_of(batch);
  ++taken_;
  return batch;
}

}  // namespace troupe::mp
