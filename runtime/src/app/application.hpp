#pragma once

#include <memory>
#include <string>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "transport/basp_limits.hpp"
#include "troupe/api.hpp"

namespace troupe {

/// The actor system of a process and its network. Shutting down is: stop intake (unpublish), end
/// the actors (their owners do that), then destroy this, which waits for them; a Watchdog around
/// it bounds the wait. A process that answers signals itself holds BlockedSignals before it.
class TROUPE_API Application {
 public:
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  caf::actor_system& system() { return *system_; }
  BaspNetwork& network() { return *network_; }

 private:
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<BaspNetwork> network_;
};

}  // namespace troupe
