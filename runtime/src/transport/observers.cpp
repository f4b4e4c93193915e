#include "transport/observers.hpp"

#include <algorithm>

#include <caf/event_based_actor.hpp>

namespace troupe {

void Observers::add(caf::event_based_actor& self, const caf::actor& observer) {
  if (contains(observer)) return;
  self.monitor(observer);
  for (const caf::message& event : history_) self.send(observer, event);
  observers_.push_back(observer);
}

void Observers::publish(caf::event_based_actor& self, const caf::message& event) {
  for (const caf::actor& observer : observers_) self.send(observer, event);
  if (history_.size() < max_history) history_.push_back(event);
}

bool Observers::forget(const caf::actor_addr& ended) {
  const auto found = std::find_if(observers_.begin(), observers_.end(),
                                  [&](const caf::actor& actor) { return actor == ended; });
  if (found == observers_.end()) return false;
  observers_.erase(found);
  return true;
}

bool Observers::contains(const caf::actor& actor) const {
  return std::find(observers_.begin(), observers_.end(), actor) != observers_.end();
}

}  // namespace troupe
