#pragma once

#include <future>

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
///
/// Its last act is to tell its observers, CAF's broker among them for peers that know it. CAF
/// counts an actor as done before that, and a broker that was stopped meanwhile keeps the message,
/// and with it the actor, for ever: a system with a detached actor would then never end. So whoever
/// ends a published actor waits for it before the system goes.
class TROUPE_API PublishedActor : public caf::event_based_actor {
 public:
  using caf::event_based_actor::enqueue;
  using caf::event_based_actor::event_based_actor;

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;

  bool cleanup(caf::error&& reason, caf::execution_unit* unit) override;

  /// Ready once all observers have been told that the actor has ended.
  std::shared_future<void> ended() const { return ended_; }

 private:
  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
  bool cleaned_up_ = false;
};

/// Tells a published actor to end.
TROUPE_API void end_published(const caf::actor& actor);

/// Tells a published actor of this process to end, and waits until it has. Not from an actor.
TROUPE_API void end_published_and_wait(const caf::actor& actor);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::EndActor)
