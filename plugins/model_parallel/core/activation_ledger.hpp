#pragma once

#include <cstdint>
#include <map>

namespace troupe::mp {

/// Counts the activations that a stage keeps between the forward and the backward of its
/// micro-batches: how many and how many bytes, now and at most. Keys are any number that is
/// unique among the live micro-batches.
class ActivationLedger {
 public:
  /// A forward is done and its activations stay. A key that is live already is a programmer error.
  void keep(std::uint64_t micro_batch, std::uint64_t bytes);

  /// The backward is done. Unknown keys are a programmer error.
  void release(std::uint64_t micro_batch);

  std::uint32_t live_micro_batches() const { return static_cast<std::uint32_t>(live_.size()); }
  std::uint64_t live_bytes() const { return live_bytes_; }

  /// Since the last `reset_peaks`.
  std::uint32_t peak_micro_batches() const { return peak_micro_batches_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }

  /// Starts a new period of observation at the present level.
  void reset_peaks();

 private:
  std::map<std::uint64_t, std::uint64_t> live_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint32_t peak_micro_batches_ = 0;
};

}  // namespace troupe::mp
