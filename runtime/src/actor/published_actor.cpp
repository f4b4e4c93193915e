#include "actor/published_actor.hpp"

#include <utility>

#include <caf/send.hpp>
#include <caf/system_messages.hpp>

namespace troupe {

void PublishedActor::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) {
  if (element->content().match_elements<caf::exit_msg>()) return;
  event_based_actor::enqueue(std::move(element), unit);
}

void end_published(const caf::actor& actor) { caf::anon_send(actor, EndActor{}); }

}  // namespace troupe
