#pragma once

#include <google/protobuf/any.pb.h>

#include "troupe/plugin.hpp"
#include "troupe/result.hpp"

namespace troupe::netprobe {

inline constexpr const char* probe_factory = "netprobe.probe";
/// Name of the probe on every node.
inline constexpr const char* probe_actor = "probe";

/// The actor of factory "netprobe.probe": answers pings of other probes at once, and on a Measure
/// message pings a peer until its measurement is complete, then reports to who asked. Messages are
/// Deliveries with a v1::Message as header; a malformed one ends the actor.
Result<caf::actor> spawn_probe(ActorContext& context, const google::protobuf::Any& config);

}  // namespace troupe::netprobe
