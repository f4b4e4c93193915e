#include "core/stage_totals.hpp"

#include <algorithm>

namespace troupe::mp {

StageTotals::StageTotals(std::size_t stages) : totals_(stages) {
  for (std::size_t i = 0; i < stages; ++i) totals_[i].set_stage(static_cast<std::uint32_t>(i));
}

void StageTotals::add(const v1::StageTimes& report) {
  if (report.stage() >= totals_.size()) return;
  auto& total = totals_[report.stage()];
  total.set_compute(total.compute() + report.compute());
  total.set_waiting(total.waiting() + report.waiting());
  total.set_transfer(total.transfer() + report.transfer());
  total.set_live_bytes(report.live_bytes());
  total.set_peak_live_bytes(std::max(total.peak_live_bytes(), report.peak_live_bytes()));
  total.set_peak_compute_bytes(std::max(total.peak_compute_bytes(), report.peak_compute_bytes()));
  total.set_peak_live_micro_batches(
      std::max(total.peak_live_micro_batches(), report.peak_live_micro_batches()));
}

void StageTotals::add(const std::vector<v1::StageTimes>& reports) {
  for (const auto& report : reports) add(report);
}

}  // namespace troupe::mp
