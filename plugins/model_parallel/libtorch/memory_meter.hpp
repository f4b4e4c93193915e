#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace troupe::mp::libtorch {

/// Counts what LibTorch's allocators hand out to one thread and get back while a Guard stands:
/// tensors of any device, what autograd saves of them included. Memory that was there before, and
/// what libraries allocate by themselves, is not seen.
///
/// Thread: one at a time.
class MemoryMeter final : public c10::MemoryReportingInfoBase {
 public:
  /// Counts in this thread as long as it stands.
  class Guard {
   public:
    explicit Guard(std::shared_ptr<MemoryMeter> meter)
        : guard_(c10::DebugInfoKind::PROFILER_STATE, std::move(meter)) {}

   private:
    c10::DebugInfoGuard guard_;
  };

  /// Starts a new operation.
  void start();

  /// Bytes handed out since `start` and not returned.
  std::int64_t held() const { return held_; }
  /// The most that this ever was.
  std::int64_t peak() const { return peak_; }

  /// These bytes belong to something that is not counted (the gradients of weights).
  void exclude(std::int64_t bytes) { held_ -= bytes; }

  void reportMemoryUsage(void* memory, std::int64_t change, std::int64_t, std::int64_t,
                         c10::Device) override;
  bool memoryProfilingEnabled() const override { return true; }

 private:
  std::int64_t held_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace troupe::mp::libtorch
