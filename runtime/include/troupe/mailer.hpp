#pragma once

#include <memory>
#include <string>

#include <caf/actor.hpp>

#include "troupe/api.hpp"
#include "troupe/parcel.hpp"

namespace troupe {

/// The way out of a node: hands parcels to the node's endpoint, which chunks them, waits for
/// credit and sends them. Never blocks; parcels between the same two actors in one class arrive
/// in the order in which they were sent. Cheap to copy; usable from any thread.
///
/// The sender bounds its own queue: it may hold as many unsent parcels as its in-flight window
/// allows (the schedule's window for stages, the prefetch budget for the data actor).
class TROUPE_API Mailer {
 public:
  Mailer() = default;
  Mailer(std::string node, caf::actor endpoint);

  /// Name of the node this mailer sends from.
  const std::string& node() const { return node_; }

  void send(Parcel parcel) const;

  /// Makes `actor` reachable as (this node, `name`). Deliveries that arrive later go to it.
  void bind(const std::string& name, const caf::actor& actor) const;
  void unbind(const std::string& name) const;

 private:
  std::string node_;
  caf::actor endpoint_;
};

}  // namespace troupe
