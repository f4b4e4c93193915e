#pragma once

#include <string>
#include <utility>

#include "actors/protocol.hpp"

namespace troupe::mp {

/// Sends this plugin's messages in the name of one local actor.
class Postbox {
 public:
  Postbox() = default;
  Postbox(Mailer mailer, std::string actor)
      : mailer_(std::move(mailer)), actor_(std::move(actor)) {}

  ActorAddress self() const { return {mailer_.node(), actor_}; }

  void send(const ActorAddress& to, TrafficClass traffic, AdmissionUnit unit,
            const v1::Message& message, Blob payload = {}) const {
    mailer_.send(make_parcel({to, actor_, traffic, unit}, message, std::move(payload)));
  }

  /// A message without payload in the control class.
  void send_control(const ActorAddress& to, const v1::Message& message) const {
    send(to, TrafficClass::control, 0, message);
  }

 private:
  Mailer mailer_;
  std::string actor_;
};

}  // namespace troupe::mp
