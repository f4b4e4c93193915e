#include "app/application.hpp"

namespace troupe {

Application::Application() {
  configure_system(config_);
  system_ = std::make_unique<caf::actor_system>(config_);
  close_default_servers(*system_);
  network_ = std::make_unique<BaspNetwork>(*system_);
}

// The network holds a detached actor: it ends before the system waits for all actors.
Application::~Application() {
  network_.reset();
  system_.reset();
}

}  // namespace troupe
