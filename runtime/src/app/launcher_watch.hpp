#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <caf/actor.hpp>

#include "transport/liveness.hpp"
#include "troupe/api.hpp"

namespace troupe {

/// Which launchers of a job still answer, and which of its nodes depend on them. A plain class: the
/// driver actor asks the launchers and tells this what it hears.
class TROUPE_API LauncherWatch {
 public:
  using Duration = Liveness::Duration;

  LauncherWatch(Duration interval, Duration timeout) : interval_(interval), timeout_(timeout) {}

  /// `node` of the job runs on the machine of `launcher`. A launcher may be added for many nodes.
  void add(const caf::actor& launcher, const std::string& node);

  /// Any answer is a sign of life.
  void on_answer(const caf::actor& launcher);

  /// `elapsed` since the last tick. Returns those that have been silent for the whole timeout.
  std::vector<caf::actor> on_tick(Duration elapsed);

  /// Watches this launcher no longer; returns the nodes that depended on it.
  std::vector<std::string> remove(const caf::actor_addr& launcher);

  /// Those to be asked.
  std::vector<caf::actor> launchers() const;

 private:
  struct Watched {
    caf::actor launcher;
    std::vector<std::string> nodes;
    Liveness life;
  };

  Duration interval_;
  Duration timeout_;
  std::map<caf::actor_addr, Watched> watched_;
};

}  // namespace troupe
