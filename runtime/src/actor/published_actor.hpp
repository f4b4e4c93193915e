#pragma once

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>

#include "troupe/api.hpp"

namespace troupe {

/// To a PublishedActor, from its own process: come to an end. Cannot cross the network.
struct EndActor {};

/// Base of the actors that a process publishes. CAF lets anyone who can send to an actor end it by
/// an exit message, and one for the reason `kill` reaches no handler; here exit messages are
/// dropped before they are looked at, whoever sends them, and only EndActor ends the actor.
class TROUPE_API PublishedActor : public caf::event_based_actor {
 public:
  using caf::event_based_actor::enqueue;
  using caf::event_based_actor::event_based_actor;

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;
};

/// Tells a published actor to end.
TROUPE_API void end_published(const caf::actor& actor);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::EndActor)
