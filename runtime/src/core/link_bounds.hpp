#pragma once

#include <cstdint>

namespace troupe {

/// What bounds one class of traffic from one node to another. The defaults are those that job.proto
/// documents for LinkLimits.
struct LinkBounds {
  /// Bytes sent and not yet placed by the receiver.
  std::uint64_t chunk_budget = 8ULL << 20;
  /// Bytes delivered and still held, for each flow (sending actor, receiving actor).
  std::uint64_t admission_budget = 64ULL << 20;
  /// Largest piece of payload in one frame; half the chunk budget if that is less.
  std::uint64_t chunk_bytes = 256ULL << 10;
  /// Largest payload a receiver accepts in one message.
  std::uint64_t max_message_bytes = 64ULL << 30;
  /// Largest plugin header: it travels whole, in the first frame of its message.
  std::uint64_t max_header_bytes = 8ULL << 20;
};

}  // namespace troupe
