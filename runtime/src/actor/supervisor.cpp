#include "actor/supervisor.hpp"

#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "troupe/guard.hpp"

namespace troupe {

/// The supervisor to itself: the delay before a restart is over.
struct StartChild {};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StartChild)

namespace troupe {
namespace {

class SupervisorState {
 public:
  static constexpr const char* name = "supervisor";

  explicit SupervisorState(caf::stateful_actor<SupervisorState>* self)
      : self_(self), policy_(RestartPolicy::Settings{}) {}

  caf::behavior make_behavior(SupervisorConfig config) {
    config_ = std::move(config);
    policy_ = RestartPolicy(config_.restarts);
    guard(*self_);
    self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
    self_->set_exit_handler([this](const caf::exit_msg& exit) {
      if (child_) self_->send_exit(child_, exit.reason);
      self_->quit(exit.reason);
    });
    self_->send(self_, StartChild{});
    return {[this](StartChild) { start(); }};
  }

 private:
  void start() {
    auto child = config_.start();
    if (!child) {
      on_failure(std::move(child).error());
      return;
    }
    child_ = std::move(*child);
    self_->monitor(child_);
    self_->send(config_.listener, ChildStarted{config_.name, child_, restarts_});
  }

  void on_down(const caf::down_msg& down) {
    if (down.source != child_) return;
    child_ = nullptr;
    if (!down.reason) {
      end({config_.name, false, {}});
      return;
    }
    on_failure(
        internal_error(config_.name, "the actor died: " + self_->system().render(down.reason)));
  }

  void on_failure(Error error) {
    const auto delay = policy_.on_failure(self_->clock().now().time_since_epoch());
    if (!delay) {
      error.what += " (after " + std::to_string(restarts_) + " restarts)";
      end({config_.name, true, std::move(error)});
      return;
    }
    ++restarts_;
    self_->delayed_send(self_, *delay, StartChild{});
  }

  void end(ChildEnded ended) {
    self_->send(config_.listener, std::move(ended));
    self_->quit();
  }

  caf::stateful_actor<SupervisorState>* self_;
  SupervisorConfig config_;
  RestartPolicy policy_;
  caf::actor child_;
  int restarts_ = 0;
};

}  // namespace

caf::actor spawn_supervisor(caf::actor_system& system, SupervisorConfig config) {
  const auto behavior = [](caf::stateful_actor<SupervisorState>* self, SupervisorConfig settings) {
    return self->state.make_behavior(std::move(settings));
  };
  return system.spawn(behavior, std::move(config));
}

}  // namespace troupe
