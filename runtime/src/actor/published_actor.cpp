#include "actor/published_actor.hpp"

#include <utility>

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

namespace troupe {

void PublishedActor::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  if (element->content().match_elements<caf::exit_msg>()) return;
  event_based_actor::enqueue(std::move(element), unit);
}

bool PublishedActor::cleanup(caf::error&& reason, caf::execution_unit* unit) {
  const bool done = event_based_actor::cleanup(std::move(reason), unit);
  // CAF may call this again.
  if (!std::exchange(cleaned_up_, true)) end_.set_value();
  return done;
}

void end_published(const caf::actor& actor) { caf::anon_send(actor, EndActor{}); }

void end_published_and_wait(const caf::actor& actor) {
  auto* published = dynamic_cast<PublishedActor*>(caf::actor_cast<caf::abstract_actor*>(actor));
  end_published(actor);
  if (published != nullptr) published->ended().wait();
}

}  // namespace troupe
