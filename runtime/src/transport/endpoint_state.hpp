#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/stateful_actor.hpp>

#include "core/link_bounds.hpp"
#include "transport/early_frames.hpp"
#include "transport/endpoint.hpp"
#include "transport/liveness.hpp"
#include "transport/observers.hpp"
#include "transport/peer_link.hpp"

namespace troupe {

// Messages an endpoint receives from itself and from the receipts it gave out.

/// A receipt was destroyed: its bytes are no longer held.
struct ReturnCredit {
  std::string peer;
  std::uint64_t attachment;  ///< of the peer when the receipt was made
  TrafficClass traffic;
  std::string from;
  std::string to;
  AdmissionUnit unit;
  std::uint64_t bytes;
};
/// Send the credit that is owed. Queued behind the messages already waiting, so that their credit
/// goes in the same frames.
struct FlushCredits {};
/// An interval has passed: give signs of life, look for those of the peers.
struct HeartbeatTick {};

/// State and logic of an endpoint actor; see spawn_endpoint. Runs on the actor's thread only.
class EndpointState {
 public:
  static constexpr const char* name = "endpoint";

  explicit EndpointState(caf::stateful_actor<EndpointState>* self);
  ~EndpointState();

  caf::behavior make_behavior(EndpointConfig config);

 private:
  struct Peer {
    caf::actor endpoint;
    std::uint64_t attachment;
    PeerLink link;
    Liveness life;
  };

  // Local actors.
  void bind(const std::string& name, const caf::actor& actor);
  void unbind(const std::string& name);
  void forget_actor(const caf::actor& actor);
  void send(Parcel parcel);
  void return_credit(const ReturnCredit& credit);
  LinkStatusList link_status() const;

  // Peers.
  bool attach(const AttachPeer& attach);
  void detach(const std::string& node);
  void receive(Frame frame);
  void refuse();
  void handle_frame(const std::string& node, Peer& peer, Frame frame);
  Result<void> handle(const std::string& node, Peer& peer, DecodedFrame frame);
  void tick();
  void on_down(const caf::actor_addr& source, const caf::error& reason);

  // What they have in common.
  void pump(const std::string& node, Peer& peer, TrafficClass traffic);
  void pump_local(TrafficClass traffic);
  void deliver(const std::string& from_node, std::uint64_t attachment, TrafficClass traffic,
               IncomingMessage message);
  void owe_flush();
  void flush_credits();
  void send_frame(const std::string& node, const Peer& peer, std::string header, Blob payload);
  void lose(const std::string& node, const std::string& reason);
  void drop(const std::string& node);
  void fail(Error error);

  caf::stateful_actor<EndpointState>* self_;
  std::string node_;
  RunKey run_key_;
  LinkBounds bounds_;
  std::shared_ptr<Transport> transport_;
  std::chrono::nanoseconds heartbeat_interval_{};
  std::chrono::nanoseconds heartbeat_timeout_{};

  std::map<std::string, caf::actor> bound_;
  std::map<std::string, Peer> peers_;  // attached ones
  std::set<std::string> gone_;         // down or left: their traffic is dropped
  EarlyFrames early_;
  std::uint64_t refused_frames_ = 0;
  PeerLink local_;  // parcels to the node itself
  std::uint64_t attachments_ = 0;
  std::uint64_t heartbeats_ = 0;
  bool flush_queued_ = false;
  std::chrono::nanoseconds last_tick_{};

  Observers observers_;
  std::size_t failures_ = 0;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ReturnCredit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::FlushCredits)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::HeartbeatTick)
