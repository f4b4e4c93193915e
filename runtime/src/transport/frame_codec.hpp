#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/chunk.hpp"
#include "transport/transport.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A frame's content, decoded (see link.proto for the meaning of each field).
struct ChunkFrame {
  TrafficClass traffic = TrafficClass::control;
  Chunk chunk;
};
struct CreditFrame {
  TrafficClass traffic = TrafficClass::control;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t admission_bytes = 0;
  std::string from;
  std::string to;
  AdmissionUnit unit = 0;
};
struct HeartbeatFrame {
  std::uint64_t count = 0;
};
using DecodedFrame = std::variant<ChunkFrame, CreditFrame, HeartbeatFrame>;

/// Headers in wire form; a chunk's piece travels beside it, as the frame's payload.
TROUPE_API std::string encode_header(TrafficClass traffic, const Chunk& chunk);
TROUPE_API std::string encode_header(const CreditFrame& credit);
TROUPE_API std::string encode_header(const HeartbeatFrame& heartbeat);

/// Errors (cluster, without `where`): not a header, an unknown field or class of traffic, no kind.
TROUPE_API Result<DecodedFrame> decode(Frame frame);

}  // namespace troupe
