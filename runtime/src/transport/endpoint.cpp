// The endpoint actor: one for each node. Protocol between two endpoints (link.proto):
//
//   sender                                   receiver
//   Parcel from a local actor
//     queued in the class's LinkSender
//     admission credit taken  --- chunk 0 (opening), chunk 1, ... -->  placed by the Reassembler
//     chunk credit taken                                               Delivery to the bound actor
//                             <-- Credit{chunk_bytes} ----------------  for each placed chunk
//                             <-- Credit{admission_bytes} ------------  when the Receipt is
//                             destroyed
//
// Both sides also send a Heartbeat each interval; any frame counts as a sign of life.
//
// A peer is attached, then either down (its connection closed, it fell silent, it broke the
// protocol) or has left (DetachPeer). What is on its way to or from it is then dropped, receipts
// for its parcels return nothing, and it may be attached again as a new incarnation.

#include "transport/endpoint.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <caf/actor_clock.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "core/seconds.hpp"
#include "transport/endpoint_state.hpp"
#include "transport/wire.hpp"
#include "troupe/guard.hpp"
#include "troupe/log.hpp"

namespace troupe {
namespace {

/// Failures kept and published: the first one decides, a flood of them helps nobody.
constexpr std::size_t max_failures = 64;
/// However short an interval somebody asks for: an endpoint that only beats is of no use.
constexpr std::chrono::milliseconds shortest_interval{1};

LinkBounds bounds_of(const runtime::v1::LinkLimits& limits) {
  LinkBounds bounds;
  if (limits.chunk_budget_bytes() != 0) bounds.chunk_budget = limits.chunk_budget_bytes();
  if (limits.admission_budget_bytes() != 0) {
    bounds.admission_budget = limits.admission_budget_bytes();
  }
  if (limits.chunk_bytes() != 0) bounds.chunk_bytes = limits.chunk_bytes();
  return bounds;
}

/// Returns a delivery's admission credit by a message to the endpoint that made it, if that still
/// lives: from any thread.
class ReturnToEndpoint : public Receipt::Sink {
 public:
  ReturnToEndpoint(caf::actor_addr endpoint, ReturnCredit credit)
      : endpoint_(std::move(endpoint)), credit_(std::move(credit)) {}

  void release(std::uint64_t bytes, AdmissionUnit unit) override {
    const auto endpoint = caf::actor_cast<caf::strong_actor_ptr>(endpoint_);
    if (!endpoint) return;
    credit_.bytes = bytes;
    credit_.unit = unit;
    caf::anon_send(caf::actor_cast<caf::actor>(endpoint), std::move(credit_));
  }

 private:
  caf::actor_addr endpoint_;
  ReturnCredit credit_;
};

}  // namespace

EndpointState::EndpointState(caf::stateful_actor<EndpointState>* self)
    : self_(self), early_(LinkBounds{}), local_(LinkBounds{}) {}

EndpointState::~EndpointState() = default;

caf::behavior EndpointState::make_behavior(EndpointConfig config) {
  node_ = std::move(config.node);
  bounds_ = bounds_of(config.limits);
  transport_ = std::move(config.transport);
  run_key_ = config.run_key;
  heartbeat_interval_ = std::max<std::chrono::nanoseconds>(
      to_duration(config.heartbeat.interval_seconds(), std::chrono::milliseconds(500)),
      shortest_interval);
  heartbeat_timeout_ = to_duration(config.heartbeat.timeout_seconds(), std::chrono::seconds(3));
  early_ = EarlyFrames(bounds_);
  local_ = PeerLink(bounds_);

  guard(*self_);
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down.source, down.reason); });
  last_tick_ = self_->clock().now().time_since_epoch();
  self_->delayed_send(self_, heartbeat_interval_, HeartbeatTick{});

  // The handlers may use `this`: the state lives as long as the behavior.
  return {
      [this](Parcel& parcel) { send(std::move(parcel)); },
      [this](Frame& frame) { receive(std::move(frame)); },
      [this](const ReturnCredit& credit) { return_credit(credit); },
      [this](FlushCredits) { flush_credits(); },
      [this](HeartbeatTick) { tick(); },
      [this](const Bind& request) { bind(request.name, request.actor); },
      [this](const Unbind& request) { unbind(request.name); },
      [this](const AttachPeer& request) { return attach(request); },
      [this](const DetachPeer& request) { detach(request.node); },
      [this](const Subscribe& request) { observers_.add(*self_, request.observer); },
      [this](GetLinkStatus) { return link_status(); },
  };
}

// --- local actors -------------------------------------------------------------------------------

void EndpointState::bind(const std::string& name, const caf::actor& actor) {
  unbind(name);
  self_->monitor(actor);
  bound_[name] = actor;
}

void EndpointState::unbind(const std::string& name) {
  const auto bound = bound_.find(name);
  if (bound == bound_.end()) return;
  const caf::actor actor = std::move(bound->second);
  bound_.erase(bound);
  forget_actor(actor);
}

void EndpointState::forget_actor(const caf::actor& actor) {
  // Ends all monitors there are on an actor, so not while another one is needed.
  if (observers_.contains(actor)) return;
  for (const auto& entry : bound_)
    if (entry.second == actor) return;
  self_->demonitor(actor);
}

void EndpointState::send(Parcel parcel) {
  const std::string node = std::move(parcel.to.node);
  const TrafficClass traffic = parcel.traffic;
  if (gone_.count(node) != 0) return;
  const auto peer = peers_.find(node);
  if (node != node_ && peer == peers_.end()) {
    fail(internal_error(
        node_, fmt::format("{} sent a parcel to {} on node {}, which is not connected", parcel.from,
                           parcel.to.actor, node)));
    return;
  }
  if (parcel.header.size() > bounds_.max_header_bytes ||
      parcel.payload.size() > bounds_.max_message_bytes) {
    fail(internal_error(
        node_,
        fmt::format("{} sent {} a parcel with {} bytes of header and {} of payload, over the "
                    "limits of {} and {}",
                    parcel.from, parcel.to.actor, parcel.header.size(), parcel.payload.size(),
                    bounds_.max_header_bytes, bounds_.max_message_bytes)));
    return;
  }
  OutgoingMessage message{std::move(parcel.from), std::move(parcel.to.actor), parcel.unit,
                          std::move(parcel.header), std::move(parcel.payload)};
  if (node == node_) {
    local_.sender(traffic).enqueue(std::move(message));
    pump_local(traffic);
  } else {
    peer->second.link.sender(traffic).enqueue(std::move(message));
    pump(node, peer->second, traffic);
  }
}

void EndpointState::return_credit(const ReturnCredit& credit) {
  if (credit.peer == node_) {
    auto returned = local_.sender(credit.traffic)
                        .return_admission_credit(credit.from, credit.to, credit.unit, credit.bytes);
    if (!returned) fail(std::move(returned).error());
    pump_local(credit.traffic);
    return;
  }
  const auto peer = peers_.find(credit.peer);
  if (peer == peers_.end() || peer->second.attachment != credit.attachment) return;
  peer->second.link.owe_admission(credit.traffic, credit.from, credit.to, credit.unit,
                                  credit.bytes);
  owe_flush();
}

LinkStatusList EndpointState::link_status() const {
  LinkStatusList status;
  status.refused_frames = refused_frames_;
  status.early_bytes = early_.bytes();
  local_.append_status(node_, status.links);
  for (const auto& [node, peer] : peers_) peer.link.append_status(node, status.links);
  return status;
}

// --- peers --------------------------------------------------------------------------------------

bool EndpointState::attach(const AttachPeer& attach) {
  if (attach.node == node_) return false;
  const auto known = peers_.find(attach.node);
  // A live peer is not replaced: whoever calls himself by its name is another one.
  if (known != peers_.end()) return known->second.endpoint == attach.endpoint;
  gone_.erase(attach.node);
  self_->monitor(attach.endpoint);
  peers_.emplace(attach.node, Peer{attach.endpoint, ++attachments_, PeerLink(bounds_),
                                   Liveness(heartbeat_interval_, heartbeat_timeout_)});
  for (auto& frame : early_.take(attach.node)) receive(std::move(frame));
  return true;
}

void EndpointState::detach(const std::string& node) { drop(node); }

void EndpointState::receive(Frame frame) {
  // Before anything the frame says is believed: a stranger could name any peer as its sender.
  if (frame.run_key != run_key_) return refuse();
  const std::string node = frame.from;
  const auto peer = peers_.find(node);
  if (peer != peers_.end()) return handle_frame(node, peer->second, std::move(frame));
  // A peer that has attached this node may send before it is attached here.
  if (gone_.count(node) == 0 && !early_.keep(std::move(frame)))
    log_debug("endpoint", "dropped the early frames of node {}: too many", node);
}

void EndpointState::refuse() {
  ++refused_frames_;
  // A flood of frames is no flood of log lines.
  if ((refused_frames_ & (refused_frames_ - 1)) == 0)
    log_debug("endpoint", "{} frames of other runs or of strangers dropped", refused_frames_);
}

void EndpointState::handle_frame(const std::string& node, Peer& peer, Frame frame) {
  peer.life.on_sign_of_life();
  auto decoded = decode(std::move(frame));
  auto handled =
      decoded ? handle(node, peer, std::move(*decoded)) : Result<void>(std::move(decoded).error());
  if (!handled) {
    // The rest of what this peer sends cannot be understood.
    drop(node);
    Error error = std::move(handled).error();
    error.where = "link from " + node + " to " + node_;
    fail(std::move(error));
  }
}

Result<void> EndpointState::handle(const std::string& node, Peer& peer, DecodedFrame frame) {
  if (auto* credit = std::get_if<CreditFrame>(&frame)) {
    TROUPE_TRY(peer.link.take_credit(*credit));
    pump(node, peer, credit->traffic);
  } else if (auto* chunk = std::get_if<ChunkFrame>(&frame)) {
    const TrafficClass traffic = chunk->traffic;
    TROUPE_ASSIGN(auto message, peer.link.accept(std::move(*chunk)));
    owe_flush();
    if (message) deliver(node, peer.attachment, traffic, std::move(*message));
  }
  return {};
}

void EndpointState::tick() {
  self_->delayed_send(self_, heartbeat_interval_, HeartbeatTick{});
  const std::chrono::nanoseconds now = self_->clock().now().time_since_epoch();
  const std::chrono::nanoseconds elapsed = now - last_tick_;
  last_tick_ = now;
  ++heartbeats_;
  std::vector<std::string> silent;
  for (auto& [node, peer] : peers_) {
    send_frame(node, peer, encode_header(HeartbeatFrame{heartbeats_}), {});
    if (!peer.life.on_tick(elapsed)) silent.push_back(node);
  }
  for (const auto& node : silent) {
    const std::chrono::duration<double> timeout = heartbeat_timeout_;
    lose(node, fmt::format("no sign of life for {:.1f} s", timeout.count()));
  }
}

void EndpointState::on_down(const caf::actor_addr& source, const caf::error& reason) {
  observers_.forget(source);
  for (const auto& [node, peer] : peers_) {
    if (peer.endpoint == source) {
      lose(std::string(node), "connection closed");
      return;
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, actor] : bound_)
    if (actor == source) names.push_back(name);
  for (const auto& name : names) {
    bound_.erase(name);
    // An actor that ends in order is missed only when a parcel comes for it.
    if (!reason || reason == caf::exit_reason::user_shutdown) continue;
    fail(internal_error(node_ + "/" + name, "the actor died: " + self_->system().render(reason)));
  }
}

// --- what they have in common -------------------------------------------------------------------

void EndpointState::pump(const std::string& node, Peer& peer, TrafficClass traffic) {
  LinkSender& sender = peer.link.sender(traffic);
  while (auto chunk = sender.next_chunk()) {
    std::string header = encode_header(traffic, *chunk);
    send_frame(node, peer, std::move(header), std::move(chunk->piece));
  }
}

void EndpointState::pump_local(TrafficClass traffic) {
  LinkSender& sender = local_.sender(traffic);
  while (auto message = sender.next_message()) {
    const std::uint64_t size = message->payload.size();
    deliver(node_, 0, traffic,
            IncomingMessage{Opening{std::move(message->from), std::move(message->to), size,
                                    message->unit, std::move(message->header)},
                            std::move(message->payload)});
  }
}

void EndpointState::deliver(const std::string& from_node, std::uint64_t attachment,
                            TrafficClass traffic, IncomingMessage message) {
  Opening& opening = message.opening;
  Receipt receipt;
  if (traffic != TrafficClass::control && !message.payload.empty()) {
    auto sink = std::make_shared<ReturnToEndpoint>(
        self_->address(),
        ReturnCredit{from_node, attachment, traffic, opening.from, opening.to, opening.unit, 0});
    receipt = Receipt(std::move(sink), message.payload.size(), opening.unit);
  }
  const auto bound = bound_.find(opening.to);
  if (bound == bound_.end()) {
    fail(internal_error(node_, fmt::format("no actor {} for a parcel from {}/{}", opening.to,
                                           from_node, opening.from)));
    return;
  }
  self_->send(bound->second, Delivery{{from_node, std::move(opening.from)},
                                      traffic,
                                      opening.unit,
                                      std::move(opening.header),
                                      std::move(message.payload),
                                      std::make_shared<Receipt>(std::move(receipt))});
}

void EndpointState::owe_flush() {
  if (flush_queued_) return;
  flush_queued_ = true;
  self_->send(self_, FlushCredits{});
}

void EndpointState::flush_credits() {
  flush_queued_ = false;
  for (auto& [node, peer] : peers_) {
    for (const auto& credit : peer.link.take_owed())
      send_frame(node, peer, encode_header(credit), {});
  }
}

void EndpointState::send_frame(const std::string& node, const Peer& peer, std::string header,
                               Blob payload) {
  transport_->send(node, peer.endpoint,
                   Frame{node_, std::move(header), std::move(payload), run_key_});
}

void EndpointState::lose(const std::string& node, const std::string& reason) {
  drop(node);
  observers_.publish(*self_, caf::make_message(NodeDown{node, reason}));
}

void EndpointState::drop(const std::string& node) {
  gone_.insert(node);
  const auto peer = peers_.find(node);
  if (peer == peers_.end()) return;
  self_->demonitor(peer->second.endpoint);
  peers_.erase(peer);
}

void EndpointState::fail(Error error) {
  if (++failures_ > max_failures) return;
  observers_.publish(*self_, caf::make_message(RuntimeFailure{std::move(error)}));
}

caf::actor spawn_endpoint(caf::actor_system& system, EndpointConfig config) {
  const auto behavior = [](caf::stateful_actor<EndpointState>* self, EndpointConfig settings) {
    return self->state.make_behavior(std::move(settings));
  };
  return system.spawn(behavior, std::move(config));
}

}  // namespace troupe
