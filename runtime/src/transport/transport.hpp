#pragma once

#include <string>

#include <caf/actor.hpp>

#include "core/run_key.hpp"
#include "troupe/api.hpp"
#include "troupe/blob.hpp"

namespace troupe {

/// One frame between two endpoints: a serialized runtime.v1.FrameHeader and a piece of payload.
/// The only message, besides control requests, that crosses the network.
struct Frame {
  std::string from;  ///< name of the sending node
  std::string header;
  Blob payload;
  RunKey run_key = {};  ///< of the sender: a frame of another run is dropped unseen
};

/// Moves frames to another node's endpoint, in order for each pair. Never blocks; the links bound
/// what is handed to it. Implementations: BASP (CAF's connection between two processes), the
/// simulated one for tests (delays, drops, cuts, in one actor system).
class TROUPE_API Transport {
 public:
  virtual ~Transport();
  virtual void send(const std::string& to_node, const caf::actor& to, Frame frame) = 0;
};

}  // namespace troupe
