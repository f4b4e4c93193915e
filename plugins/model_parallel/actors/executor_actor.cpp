#include "actors/executor_actor.hpp"

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/messages.hpp"
#include "troupe/guard.hpp"

namespace troupe::mp {
namespace {

struct ExecutorState {
  static inline const char* name = "executor";

  std::shared_ptr<StageExecutor> executor;
  ExecutionPolicy policy = ExecutionPolicy::detached;
  std::chrono::nanoseconds slow_down{0};
};

using ExecutorSelf = caf::stateful_actor<ExecutorState>;

/// Measures an operation from now until its completion, on whatever thread that runs, and answers
/// the sender of the current message.
class Responder {
 public:
  explicit Responder(ExecutorSelf* self)
      : client_(caf::actor_cast<caf::actor>(self->current_sender())),
        clock_(&self->clock()),
        begin_(self->clock().now()) {}

  template <class T>
  void operator()(Result<T> result) const {
    if (!client_) return;
    const std::chrono::duration<double> seconds = clock_->now() - begin_;
    caf::anon_send(client_, ExecutorDone<T>{std::move(result), seconds.count()});
  }

  void operator()(Result<void> result) const {
    if (result) return (*this)(Result<Nothing>(Nothing{}));
    (*this)(Result<Nothing>(std::move(result).error()));
  }

 private:
  caf::actor client_;
  caf::actor_clock* clock_;
  caf::actor_clock::time_point begin_;
};

/// Runs a forward or backward, after the drill's delay. The delay counts as computing.
void run(ExecutorSelf* self, std::function<void()> operation) {
  const auto delay = self->state.slow_down;
  if (delay.count() == 0) return operation();
  if (self->state.policy == ExecutionPolicy::detached) {
    std::this_thread::sleep_for(delay);
    return operation();
  }
  self->delayed_send(self, delay, ResumeOperation{std::move(operation)});
}

Result<runtime::v1::NumericFingerprint> initialise(StageExecutor& executor,
                                                   const v1::StageConfig& config) {
  TROUPE_TRY(executor.initialise(config));
  return executor.fingerprint();
}

caf::behavior executor_behavior(ExecutorSelf* self, std::shared_ptr<StageExecutor> executor,
                                ExecutionPolicy policy, double slow_down_seconds) {
  guard(*self);
  self->state.executor = std::move(executor);
  self->state.policy = policy;
  self->state.slow_down = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(slow_down_seconds));
  return {
      [self](const InitialiseExecutor& message) {
        const Responder respond(self);
        respond(initialise(*self->state.executor, message.config));
      },
      [self](RunForward& message) {
        run(self, [self, respond = Responder(self), task = std::move(message.task)]() mutable {
          self->state.executor->forward(std::move(task), respond);
        });
      },
      [self](RunBackward& message) {
        run(self, [self, respond = Responder(self), task = std::move(message.task)]() mutable {
          self->state.executor->backward(std::move(task), respond);
        });
      },
      [self](TakeTiedGradients& message) {
        self->state.executor->take_tied_gradients(std::move(message.gradients), Responder(self));
      },
      [self](ExportTiedValues) { self->state.executor->export_tied_values(Responder(self)); },
      [self](SummariseGradients) { self->state.executor->summarise_gradients(Responder(self)); },
      [self](const RunUpdate& message) {
        self->state.executor->update(message.update, Responder(self));
      },
      [self](ExportExecutorState) { self->state.executor->export_state(Responder(self)); },
      [self](ImportExecutorState& message) {
        self->state.executor->import_state(std::move(message.tensors), Responder(self));
      },
      [self](DiscardAll) { self->state.executor->discard_all(); },
      [](const ResumeOperation& message) { message.operation(); },
  };
}

}  // namespace

caf::actor spawn_executor(caf::actor_system& system, ExecutionPolicy policy,
                          std::unique_ptr<StageExecutor> executor, double slow_down_seconds) {
  return spawn_compute(system, policy, executor_behavior,
                       std::shared_ptr<StageExecutor>(std::move(executor)), policy,
                       slow_down_seconds);
}

}  // namespace troupe::mp
