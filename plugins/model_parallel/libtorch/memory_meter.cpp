#include "libtorch/memory_meter.hpp"

#include <algorithm>

namespace troupe::mp::libtorch {

void MemoryMeter::start() {
  // What is kept of an operation is the caller's to remember: it may be freed in another thread.
  held_ = 0;
  peak_ = 0;
}

void MemoryMeter::reportMemoryUsage(void* memory, std::int64_t change, std::int64_t, std::int64_t,
                                    c10::Device) {
  held_ += change;
  peak_ = std::max(peak_, held_);
}

}  // namespace troupe::mp::libtorch
