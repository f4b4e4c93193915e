#include "core/reassembler.hpp"

#include <cstring>
#include <new>
#include <string>

namespace troupe {
namespace {

Error bad_chunk(const std::string& what) { return cluster_error("", "malformed chunk: " + what); }

std::string count(std::uint64_t value) { return std::to_string(value); }

}  // namespace

Result<std::optional<IncomingMessage>> Reassembler::accept(Chunk chunk) {
  if (chunk.message != next_message_) {
    return bad_chunk("message " + count(chunk.message) + " where " + count(next_message_) +
                     " is expected");
  }
  if (chunk.opening.has_value() == open_.has_value())
    return bad_chunk(open_ ? "a second opening" : "a message without an opening");
  return open_ ? continue_with(chunk) : begin(std::move(chunk));
}

Result<void> Reassembler::check_opening(const Chunk& chunk) const {
  const Opening& opening = *chunk.opening;
  if (opening.payload_bytes > bounds_.max_message_bytes) {
    return bad_chunk("a payload of " + count(opening.payload_bytes) + " bytes, over the limit of " +
                     count(bounds_.max_message_bytes));
  }
  if (opening.header.size() > bounds_.max_header_bytes)
    return bad_chunk("a header of " + count(opening.header.size()) + " bytes, over the limit of " +
                     count(bounds_.max_header_bytes));
  if (chunk.offset != 0) return bad_chunk("an opening at offset " + count(chunk.offset));
  if (chunk.piece.size() > opening.payload_bytes)
    return bad_chunk("a piece beyond the end of its message");
  if (chunk.piece.empty() && opening.payload_bytes != 0) return bad_chunk("an empty piece");
  return {};
}

Result<std::optional<IncomingMessage>> Reassembler::begin(Chunk chunk) {
  TROUPE_TRY(check_opening(chunk));
  if (chunk.piece.size() == chunk.opening->payload_bytes) {
    ++next_message_;
    return std::make_optional(IncomingMessage{std::move(*chunk.opening), std::move(chunk.piece)});
  }
  Blob payload;
  try {
    payload = Blob::uninitialized(chunk.opening->payload_bytes);
  } catch (const std::bad_alloc&) {
    return bad_chunk("no memory for a payload of " + count(chunk.opening->payload_bytes) +
                     " bytes");
  }
  std::memcpy(payload.mutable_data(), chunk.piece.data(), chunk.piece.size());
  open_ = Open{std::move(*chunk.opening), std::move(payload), chunk.piece.size()};
  return std::optional<IncomingMessage>();
}

Result<std::optional<IncomingMessage>> Reassembler::continue_with(const Chunk& chunk) {
  if (chunk.offset != open_->received) {
    return bad_chunk("offset " + count(chunk.offset) + " where " + count(open_->received) +
                     " is expected");
  }
  if (chunk.piece.empty()) return bad_chunk("an empty piece");
  if (chunk.piece.size() > open_->payload.size() - open_->received)
    return bad_chunk("a piece beyond the end of its message");
  std::memcpy(open_->payload.mutable_data() + open_->received, chunk.piece.data(),
              chunk.piece.size());
  open_->received += chunk.piece.size();
  if (open_->received < open_->payload.size()) return std::optional<IncomingMessage>();
  IncomingMessage whole{std::move(open_->opening), std::move(open_->payload)};
  open_.reset();
  ++next_message_;
  return std::make_optional(std::move(whole));
}

}  // namespace troupe
