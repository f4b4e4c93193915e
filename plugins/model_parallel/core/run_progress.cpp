#include "core/run_progress.hpp"

#include <algorithm>
#include <string>

#include "core/bits.hpp"

namespace troupe::mp {

RunProgress::RunProgress(std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t window)
    : stages_(stages), window_(window), done_by_(micro_batches), losses_(micro_batches) {}

std::optional<std::uint32_t> RunProgress::admit() {
  if (admitted_ == done_by_.size() || in_flight() >= window_) return std::nullopt;
  done_by_[admitted_].resize(stages_);
  return admitted_++;
}

Result<void> RunProgress::stage_done(std::uint32_t stage, std::uint32_t micro_batch) {
  if (stage >= stages_ || micro_batch >= admitted_ || done_by_[micro_batch].empty() ||
      done_by_[micro_batch][stage])
    return internal_error("pipeline", "stage " + std::to_string(stage) + " reported micro-batch " +
                                          std::to_string(micro_batch) +
                                          " that it cannot have finished");
  auto& done = done_by_[micro_batch];
  done[stage] = true;
  if (std::all_of(done.begin(), done.end(), [](bool d) { return d; })) {
    done = {};  // an evaluation has very many micro-batches
    ++finished_;
  }
  return {};
}

Result<void> RunProgress::add_loss(std::uint32_t micro_batch, const v1::LossReport& report) {
  if (micro_batch >= admitted_ || losses_[micro_batch])
    return internal_error("pipeline",
                          "unexpected loss of micro-batch " + std::to_string(micro_batch));
  losses_[micro_batch] = report;
  ++losses_seen_;
  return {};
}

void LossTotals::add(const LossTotals& other) {
  const double sum =
      loss * static_cast<double>(counted) + other.loss * static_cast<double>(other.counted);
  samples += other.samples;
  counted += other.counted;
  correct += other.correct;
  if (counted != 0) loss = sum / static_cast<double>(counted);
}

LossTotals RunProgress::loss_totals() const {
  LossTotals totals;
  double sum = 0;
  for (const auto& report : losses_) {
    if (!report) continue;
    sum += static_cast<double>(report->counted()) * double_from_bits(report->loss_bits());
    totals.samples += report->samples();
    totals.counted += report->counted();
    totals.correct += report->correct();
  }
  if (totals.counted != 0) totals.loss = sum / static_cast<double>(totals.counted);
  return totals;
}

}  // namespace troupe::mp
