#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/link_bounds.hpp"
#include "transport/transport.hpp"
#include "troupe/api.hpp"

namespace troupe {

/// Frames of peers that were faster: they have attached this node and are not attached here yet. A
/// peer can send no more than its chunk credit before it is answered, so what goes beyond is none
/// of a peer's, and all that came in its name is dropped.
class TROUPE_API EarlyFrames {
 public:
  /// Far more peers than a job has that attach at the same moment.
  static constexpr std::size_t max_peers = 256;

  explicit EarlyFrames(const LinkBounds& bounds);

  /// False if the frame, and with it every frame of its sender, was dropped.
  bool keep(Frame frame);

  /// The frames of a peer that is attached now, in their order.
  std::vector<Frame> take(const std::string& node);

  std::uint64_t bytes() const { return bytes_; }
  /// The most that is kept for one peer.
  std::uint64_t max_bytes_of_peer() const { return max_bytes_of_peer_; }

 private:
  struct Kept {
    std::vector<Frame> frames;
    std::uint64_t bytes = 0;
  };

  std::uint64_t max_bytes_of_peer_;
  std::uint64_t bytes_ = 0;
  std::map<std::string, Kept> peers_;
};

}  // namespace troupe
