#include "core/activation_ledger.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::mp {

void ActivationLedger::keep(std::uint64_t micro_batch, std::uint64_t bytes) {
  const bool added = live_.emplace(micro_batch, bytes).second;
  assert(added && "the state machine runs each forward once");
  if (!added) return;
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  peak_micro_batches_ = std::max(peak_micro_batches_, live_micro_batches());
}

void ActivationLedger::release(std::uint64_t micro_batch) {
  const auto found = live_.find(micro_batch);
  assert(found != live_.end() && "the state machine runs a backward only after its forward");
  if (found == live_.end()) return;
  live_bytes_ -= found->second;
  live_.erase(found);
}

void ActivationLedger::reset_peaks() {
  peak_bytes_ = live_bytes_;
  peak_micro_batches_ = live_micro_batches();
}

}  // namespace troupe::mp
