#include "app/application.hpp"

namespace troupe {

Application::Application() {
  configure_system(config_);
  system_ = std::make_unique<caf::actor_system>(config_);
  close_default_servers(*system_);
  network_ = std::make_unique<BaspNetwork>(*system_);
}

// Actors may be connecting, so the network is there until the last of them is gone, but does not
// keep them waiting. It holds a detached actor, which ends before the system does.
Application::~Application() {
  network_->stop();
  system_->await_all_actors_done();
  network_.reset();
  system_.reset();
}

}  // namespace troupe
