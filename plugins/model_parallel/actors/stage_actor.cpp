#include "actors/stage_actor.hpp"

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/executor_actor.hpp"
#include "actors/stage_state.hpp"
#include "troupe/guard.hpp"
#include "troupe/messages.hpp"

namespace troupe::mp {
namespace {

using StageSelf = caf::stateful_actor<StageState>;

/// The executor's actor, and how the stage learns of its end and ends it.
caf::actor start_executor(StageSelf* self, ExecutionPolicy policy, const v1::StageConfig& config,
                          std::shared_ptr<std::unique_ptr<StageExecutor>> executor) {
  auto actor =
      spawn_executor(self->system(), policy, std::move(*executor), config.slow_down_seconds());
  self->monitor(actor);
  self->set_down_handler([self](const caf::down_msg& down) {
    self->state.executor_lost(self->system().render(down.reason));
  });
  self->attach_functor([actor] { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); });
  return actor;
}

caf::behavior stage_behavior(StageSelf* self, const v1::StageConfig& config, const Postbox& postbox,
                             ExecutionPolicy policy,
                             std::shared_ptr<std::unique_ptr<StageExecutor>> executor) {
  const auto compute = start_executor(self, policy, config, std::move(executor));
  self->state.start(
      config,
      {postbox, [self, compute](caf::message message) { self->send(compute, std::move(message)); },
       [self] { return self->clock().now(); }});
  guard(*self);
  self->set_exception_handler([self](std::exception_ptr& exception) -> caf::error {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      self->state.fail(internal_error("", error.what()));
    } catch (...) {
      self->state.fail(internal_error("", "an exception of unknown type"));
    }
    return caf::exit_reason::unhandled_exception;
  });
  self->send(compute, InitialiseExecutor{config});
  return {
      [self](const Delivery& delivery) { self->state.receive(delivery); },
      [self](const ExecutorDone<runtime::v1::NumericFingerprint>& done) {
        self->state.executor_ready(done.result);
      },
      [self](const ExecutorDone<ForwardOutcome>& done) { self->state.forward_done(done); },
      [self](const ExecutorDone<BackwardOutcome>& done) { self->state.backward_done(done); },
      [self](const ExecutorDone<GradientSummary>& done) { self->state.summary_done(done); },
      [self](const ExecutorDone<Nothing>& done) { self->state.nothing_done(done); },
      [self](const ExecutorDone<std::vector<Value>>& done) { self->state.values_done(done); },
      [self](const ExecutorDone<std::vector<NamedTensor>>& done) { self->state.export_done(done); },
  };
}

}  // namespace

Result<caf::actor> spawn_stage(ActorContext& context, const google::protobuf::Any& config) {
  v1::StageConfig stage;
  if (!config.UnpackTo(&stage))
    return internal_error("stage", "the config is no StageConfig: " + config.type_url());
  LayerLibraries libraries;
  libraries.names.assign(stage.layer_libraries().begin(), stage.layer_libraries().end());
  libraries.directories = context.plugin_directories;
  auto executor = create_executor(stage.device(), context.plugin_directory, libraries);
  if (!executor) {
    Error error = std::move(executor).error();
    error.where = "stage " + std::to_string(stage.stage()) + " (node " + context.self.node + "), " +
                  error.where;
    return error;
  }
  return spawn_stage_on(std::move(executor).value(), context, stage);
}

caf::actor spawn_stage_on(std::unique_ptr<StageExecutor> executor, ActorContext& context,
                          const v1::StageConfig& config) {
  return context.system.spawn(
      stage_behavior, config, Postbox(context.mailer, context.self.actor), context.policy,
      std::make_shared<std::unique_ptr<StageExecutor>>(std::move(executor)));
}

}  // namespace troupe::mp
