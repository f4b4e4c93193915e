#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "transport/transport.hpp"
#include "troupe/messages.hpp"
#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {

/// Settings of a node's endpoint.
struct EndpointConfig {
  std::string node;
  runtime::v1::LinkLimits limits;    ///< zero fields mean the documented defaults
  runtime::v1::Heartbeat heartbeat;  ///< the same
  std::shared_ptr<Transport> transport;
  RunKey run_key = {};  ///< frames with another one are dropped
};

// Messages a local actor may send to an endpoint (besides Parcel):

/// Makes a local actor reachable by name; replaces an earlier binding.
struct Bind {
  std::string name;
  caf::actor actor;
};
struct Unbind {
  std::string name;
};
/// A peer's endpoint, after hello: links to and from it open, heartbeats start. Answered with
/// whether it is attached now; not if another live endpoint has the name.
struct AttachPeer {
  std::string node;
  caf::actor endpoint;
};
/// The peer leaves in order: its silence is no failure.
struct DetachPeer {
  std::string node;
};
/// The actor gets NodeDown and RuntimeFailure, also those that have already happened, until it
/// ends.
struct Subscribe {
  caf::actor observer;
};
/// Answered with LinkStatusList.
struct GetLinkStatus {};
struct LinkStatusList {
  std::vector<runtime::v1::Status::LinkStatus> links;
  std::uint64_t refused_frames = 0;  ///< dropped because of their run key
  std::uint64_t early_bytes = 0;     ///< kept for peers that are not attached yet
};

/// The one actor of a node that talks to other nodes' endpoints: cuts parcels into chunks, keeps
/// the two credits of every link, reassembles, delivers to bound actors, and watches its peers.
/// Also serves parcels to the node itself, by a move, under the same admission credit.
TROUPE_API caf::actor spawn_endpoint(caf::actor_system& system, EndpointConfig config);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Bind)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Unbind)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AttachPeer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DetachPeer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Subscribe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GetLinkStatus)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::LinkStatusList)
