#include "netprobe/probe_actor.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/sec.hpp>
#include <caf/stateful_actor.hpp>

#include "netprobe/core/link_measurement.hpp"
#include "troupe/guard.hpp"
#include "troupe/messages.hpp"
#include "troupe/netprobe/v1/netprobe.pb.h"
#include "troupe/spawn.hpp"
#include "troupe/strict_parse.hpp"

namespace troupe::netprobe {

namespace {

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Blob zeros(std::uint64_t size) {
  Blob blob = Blob::uninitialized(size);
  // What is sent must not be what happened to lie in memory.
  if (size != 0) std::memset(blob.mutable_data(), 0, size);
  return blob;
}

class ProbeState {
 public:
  static constexpr const char* name = "netprobe.probe";

  void start(const Mailer& mailer) { mailer_ = mailer; }

  /// False if the header is no message of this plugin.
  bool receive(const Delivery& delivery) {
    const auto message = parse_strictly<v1::Message>(delivery.header);
    if (!message) return false;
    switch (message->body_case()) {
      case v1::Message::kMeasure: begin(message->measure(), delivery.from); return true;
      case v1::Message::kPing: answer(message->ping().number(), delivery); return true;
      case v1::Message::kPong:
        if (measurement_ && measurement_->answered(message->pong().number(), steady_now()))
          proceed();
        return true;
      default: return false;
    }
  }

 private:
  void begin(const v1::Measure& plan, const ActorAddress& asker) {
    asker_ = asker;
    peer_ = {plan.to(), probe_actor};
    measurement_.emplace(plan);
    payload_ = Blob();
    proceed();
  }

  void answer(std::uint64_t number, const Delivery& ping) {
    v1::Message message;
    message.mutable_pong()->set_number(number);
    send(ping.from, TrafficClass::control, ping.unit, message, {});
  }

  /// Sends the next ping, or the report.
  void proceed() {
    v1::Message message;
    const auto ping = measurement_->next(steady_now());
    if (!ping) {
      *message.mutable_report() = measurement_->result(mailer_.node());
      measurement_.reset();
      payload_ = Blob();
      send(asker_, TrafficClass::control, 0, message, {});
      return;
    }
    if (payload_.size() != ping->bytes) payload_ = zeros(ping->bytes);
    message.mutable_ping()->set_number(ping->number);
    const auto traffic = ping->bytes == 0 ? TrafficClass::control : TrafficClass::state;
    send(peer_, traffic, ++unit_, message, payload_);
  }

  void send(const ActorAddress& to, TrafficClass traffic, AdmissionUnit unit,
            const v1::Message& message, Blob payload) {
    Parcel parcel;
    parcel.to = to;
    parcel.from = probe_actor;
    parcel.traffic = traffic;
    parcel.unit = unit;
    parcel.header = message.SerializeAsString();
    parcel.payload = std::move(payload);
    mailer_.send(std::move(parcel));
  }

  Mailer mailer_;
  std::optional<LinkMeasurement> measurement_;
  ActorAddress asker_;
  ActorAddress peer_;
  Blob payload_;  ///< of the current size; made in the message that does not count
  AdmissionUnit unit_ = 0;
};

caf::behavior probe(caf::stateful_actor<ProbeState>* self, const Mailer& mailer) {
  guard(*self);
  self->state.start(mailer);
  return {[self](const Delivery& delivery) {
    if (!self->state.receive(delivery)) self->quit(caf::sec::invalid_argument);
  }};
}

}  // namespace

Result<caf::actor> spawn_probe(ActorContext& context, const google::protobuf::Any& config) {
  if (!config.Is<v1::Probe>())
    return internal_error(to_string(context.self), "the config is no Probe: " + config.type_url());
  // Filling a payload of up to 1 GiB takes a while.
  return spawn_compute(context.system, context.policy, probe, context.mailer);
}

}  // namespace troupe::netprobe
