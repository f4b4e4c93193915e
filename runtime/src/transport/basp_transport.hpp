#pragma once

#include <string>

#include "transport/transport.hpp"

namespace troupe {

/// Frames as CAF messages to the peer's endpoint, over the one BASP connection to its process.
/// Frames are sent without a sender: CAF then keeps no record of ours for the peer.
class TROUPE_API BaspTransport : public Transport {
 public:
  void send(const std::string& to_node, const caf::actor& to, Frame frame) override;
};

}  // namespace troupe
