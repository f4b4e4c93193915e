#pragma once

#include <cstdint>
#include <optional>

#include "core/chunk.hpp"
#include "core/link_bounds.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A whole message, as the receiving actor will get it.
struct IncomingMessage {
  Opening opening;
  Blob payload;
};

/// The receiving half of one class of traffic from one peer: puts chunks together again, one
/// message at a time and in order, which is how LinkSender sends them. Anything else is an error
/// of the peer, found before memory is taken or written: a number out of turn, a second opening, a
/// missing one, an offset that is not the next byte (duplicate, overlap, gap), a piece beyond the
/// announced end, an empty piece, sizes over the limits.
///
/// A message of one chunk keeps the chunk's own memory. For a longer one the announced size is
/// reserved at once but not touched: memory is committed page by page as bytes arrive, so that an
/// announcement alone costs address space only. The sender has taken admission credit for it.
class TROUPE_API Reassembler {
 public:
  explicit Reassembler(const LinkBounds& bounds) : bounds_(bounds) {}

  /// The message that this chunk completes, if it does. After an error the link is unusable.
  Result<std::optional<IncomingMessage>> accept(Chunk chunk);

 private:
  struct Open {
    Opening opening;
    Blob payload;
    std::uint64_t received;
  };

  Result<void> check_opening(const Chunk& chunk) const;
  Result<std::optional<IncomingMessage>> begin(Chunk chunk);
  Result<std::optional<IncomingMessage>> continue_with(const Chunk& chunk);

  LinkBounds bounds_;
  std::uint64_t next_message_ = 0;
  std::optional<Open> open_;
};

}  // namespace troupe
