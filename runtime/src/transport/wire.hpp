#pragma once

#include <string>

#include <caf/actor_system_config.hpp>
#include <caf/error.hpp>
#include <caf/fwd.hpp>
#include <caf/type_id.hpp>

#include "transport/transport.hpp"
#include "troupe/api.hpp"

/// The only CAF message types that cross the network. Nothing else gets a type id, so nothing else
/// can be sent by a peer and nothing else needs checking.

namespace troupe {

/// A serialized runtime.v1.Request or runtime.v1.Response, between node actors.
struct ControlBytes {
  std::string bytes;
};

TROUPE_API std::string to_string(const ControlBytes& control);
TROUPE_API std::string to_string(const Frame& frame);

/// Inspectors (CAF finds them by argument-dependent lookup). Loading checks every length against
/// what is left of the message before memory is taken; blobs are copied once, as raw bytes.
TROUPE_API caf::error inspect(caf::serializer& sink, ControlBytes& control);
TROUPE_API caf::error inspect(caf::deserializer& source, ControlBytes& control);
TROUPE_API caf::error inspect(caf::serializer& sink, Frame& frame);
TROUPE_API caf::error inspect(caf::deserializer& source, Frame& frame);

/// Registers the wire types; before the actor system is made.
TROUPE_API void add_wire_types(caf::actor_system_config& config);

}  // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_wire, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(troupe_wire, (troupe::Frame))
CAF_ADD_TYPE_ID(troupe_wire, (troupe::ControlBytes))
CAF_END_TYPE_ID_BLOCK(troupe_wire)
