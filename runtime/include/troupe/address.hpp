#pragma once

#include <string>
#include <tuple>

#include "troupe/api.hpp"

namespace troupe {

/// Name of the driver's node: the process of `troupe run`. Job files cannot declare it.
inline constexpr const char* driver_node = "driver";

/// Where an actor is reached: the node's name in the job file and the actor's name in that
/// node's directory. Names, not handles, travel between nodes.
struct ActorAddress {
  std::string node;
  std::string actor;

  friend bool operator==(const ActorAddress& a, const ActorAddress& b) {
    return a.node == b.node && a.actor == b.actor;
  }
  friend bool operator!=(const ActorAddress& a, const ActorAddress& b) { return !(a == b); }
  friend bool operator<(const ActorAddress& a, const ActorAddress& b) {
    return std::tie(a.node, a.actor) < std::tie(b.node, b.actor);
  }
};

/// `node/actor`.
inline std::string to_string(const ActorAddress& address) {
  return address.node + "/" + address.actor;
}

}  // namespace troupe
