#include "transport/early_frames.hpp"

#include <algorithm>
#include <utility>

#include "troupe/parcel.hpp"

namespace troupe {
namespace {

/// What a frame costs beside its header and payload: many small ones are not free either.
constexpr std::uint64_t frame_overhead = sizeof(Frame);
/// Heartbeats, and what the headers of frames hold beside the plugin's.
constexpr std::uint64_t allowance = 1U << 20;

std::uint64_t cost_of(const Frame& frame) {
  return frame_overhead + frame.header.size() + frame.payload.size();
}

}  // namespace

EarlyFrames::EarlyFrames(const LinkBounds& bounds)
    // The first chunk of a message passes whole, however large its plugin header is.
    : max_bytes_of_peer_(
          traffic_class_count *
              std::max(bounds.chunk_budget, bounds.max_header_bytes + bounds.chunk_bytes) +
          allowance) {}

bool EarlyFrames::keep(Frame frame) {
  auto peer = peers_.find(frame.from);
  if (peer == peers_.end()) {
    if (peers_.size() >= max_peers) return false;
    peer = peers_.emplace(frame.from, Kept{}).first;
  }
  const std::uint64_t cost = cost_of(frame);
  if (peer->second.bytes + cost > max_bytes_of_peer_) {
    bytes_ -= peer->second.bytes;
    peers_.erase(peer);
    return false;
  }
  bytes_ += cost;
  peer->second.bytes += cost;
  peer->second.frames.push_back(std::move(frame));
  return true;
}

std::vector<Frame> EarlyFrames::take(const std::string& node) {
  const auto peer = peers_.find(node);
  if (peer == peers_.end()) return {};
  std::vector<Frame> frames = std::move(peer->second.frames);
  bytes_ -= peer->second.bytes;
  peers_.erase(peer);
  return frames;
}

}  // namespace troupe
