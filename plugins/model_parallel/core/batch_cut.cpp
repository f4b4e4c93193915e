#include "core/batch_cut.hpp"

#include <algorithm>

namespace troupe::mp {
namespace {

std::uint64_t pieces(std::uint64_t whole, std::uint64_t part) { return (whole + part - 1) / part; }

}  // namespace

BatchCut::BatchCut(std::uint64_t samples, std::uint32_t batch_size, std::uint32_t micro_batch_size)
    : samples_(samples),
      batch_size_(batch_size),
      micro_batch_size_(std::min(micro_batch_size, batch_size)) {}

std::uint64_t BatchCut::batches() const { return pieces(samples_, batch_size_); }

std::uint32_t BatchCut::micro_batches_in_full_batch() const {
  return static_cast<std::uint32_t>(pieces(batch_size_, micro_batch_size_));
}

std::uint64_t BatchCut::micro_batches() const {
  const std::uint64_t full = samples_ / batch_size_;
  return full * micro_batches_in_full_batch() + pieces(samples_ % batch_size_, micro_batch_size_);
}

std::uint32_t BatchCut::samples_in_batch(std::uint64_t batch) const {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(batch_size_, samples_ - batch * batch_size_));
}

std::uint32_t BatchCut::micro_batches_in_batch(std::uint64_t batch) const {
  return static_cast<std::uint32_t>(pieces(samples_in_batch(batch), micro_batch_size_));
}

std::uint64_t BatchCut::batch_of(std::uint64_t index) const {
  return index / micro_batches_in_full_batch();
}

RowRange BatchCut::rows_of(std::uint64_t index) const {
  const auto within = static_cast<std::uint32_t>(index % micro_batches_in_full_batch());
  RowRange rows;
  rows.begin = within * micro_batch_size_;
  rows.end = std::min(rows.begin + micro_batch_size_, samples_in_batch(batch_of(index)));
  return rows;
}

double BatchCut::weight_of(std::uint64_t index) const {
  return static_cast<double>(rows_of(index).size()) / static_cast<double>(samples_);
}

void RunCounts::add(std::uint64_t counted) {
  counted_.push_back(counted);
  total_ += counted;
}

double RunCounts::weight_of(std::uint64_t index) const {
  if (total_ == 0) return 0;
  return static_cast<double>(counted_[index]) / static_cast<double>(total_);
}

}  // namespace troupe::mp
