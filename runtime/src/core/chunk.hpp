#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "troupe/blob.hpp"
#include "troupe/parcel.hpp"

namespace troupe {

/// What the first chunk of a message says of the whole.
struct Opening {
  std::string from;  ///< sending actor
  std::string to;    ///< receiving actor
  std::uint64_t payload_bytes = 0;
  AdmissionUnit unit = 0;
  std::string header;  ///< the plugin's own
};

/// A piece of a message on its way over a link.
struct Chunk {
  std::uint64_t message = 0;       ///< running number on this link and class
  std::uint64_t offset = 0;        ///< where the piece starts in the payload
  std::optional<Opening> opening;  ///< in the first chunk only
  Blob piece;
};

/// What a chunk costs of the chunk credit: the same number at both ends.
inline std::uint64_t wire_bytes(const Chunk& chunk) {
  return chunk.piece.size() + (chunk.opening ? chunk.opening->header.size() : 0);
}

}  // namespace troupe
