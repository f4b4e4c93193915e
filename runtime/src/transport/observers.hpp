#pragma once

#include <cstddef>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/fwd.hpp>
#include <caf/message.hpp>

#include "troupe/api.hpp"

namespace troupe {

/// The actors that want to know what happens, and what has happened for those that come late. For
/// one actor to keep, and to use from its own thread; that actor passes the down messages it gets
/// to `forget`, since no handle to an actor that has ended is kept.
class TROUPE_API Observers {
 public:
  /// The most events that late observers are told: the first ones, which explain the others.
  static constexpr std::size_t max_history = 256;

  /// Monitors the observer and sends it what has happened.
  void add(caf::event_based_actor& self, const caf::actor& observer);

  void publish(caf::event_based_actor& self, const caf::message& event);

  /// Whether this was an observer; it is none any more.
  bool forget(const caf::actor_addr& ended);

  bool contains(const caf::actor& actor) const;
  std::size_t size() const { return observers_.size(); }

 private:
  std::vector<caf::actor> observers_;
  std::vector<caf::message> history_;
};

}  // namespace troupe
