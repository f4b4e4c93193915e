#pragma once

#include <cstdint>
#include <string>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/type_id.hpp>

#include "troupe/parcel.hpp"
#include "troupe/result.hpp"

/// The runtime's CAF messages that plugins see. All of them are local: what crosses the network
/// is declared in runtime/src/transport/wire.hpp and nowhere else.

namespace troupe {

/// Endpoint and driver actor -> subscribers: `node` is gone for good. It never comes back under
/// this job: its work is lost.
struct NodeDown {
  std::string node;
  std::string reason;  ///< "connection closed", "no sign of life for 3.0 s", ...
};

/// Driver actor -> subscribers: the user pressed Ctrl-C or sent SIGTERM, or the launcher of a node
/// drains: finish the present step, save, stop.
struct Interrupted {};

/// Runtime -> subscribers: something that makes the job fail, for example a parcel for an actor
/// that does not exist or a malformed frame.
struct RuntimeFailure {
  Error error;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Delivery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Parcel)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::NodeDown)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Interrupted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RuntimeFailure)
