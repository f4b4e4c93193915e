#pragma once

#include <cstdint>
#include <string>

#include "troupe/mailer.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/parcel.hpp"
#include "troupe/result.hpp"

/// What every actor of this plugin does with the messages it exchanges with other nodes.

namespace troupe::mp {

/// Parses a delivery's header. Malformed bytes, a message without a body and fields that this
/// build does not know are errors: nothing half-understood is acted upon.
Result<v1::Message> parse_message(const Delivery& delivery);

/// Where a message belongs: who sends it to whom and what share of the credit it uses.
struct Route {
  ActorAddress to;
  std::string from;  ///< name of the sending actor
  TrafficClass traffic = TrafficClass::control;
  AdmissionUnit unit = 0;
};

/// A parcel that carries `message` and `payload`.
Parcel make_parcel(const Route& route, const v1::Message& message, Blob payload = {});

ActorAddress to_address(const v1::StageConfig::Address& address);

/// `Failed` with the parts of an error, and back.
v1::Failed to_proto(const Error& error, std::uint32_t stage);
Error to_error(const v1::Failed& failed);

}  // namespace troupe::mp
