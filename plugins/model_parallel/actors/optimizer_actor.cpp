#include "actors/optimizer_actor.hpp"

#include <optional>
#include <set>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/driver_messages.hpp"
#include "actors/postbox.hpp"
#include "core/bits.hpp"
#include "core/gradient_norm.hpp"
#include "core/loss_scaler.hpp"
#include "core/plan.hpp"
#include "troupe/guard.hpp"
#include "troupe/messages.hpp"

// A step, from / to / condition / action:
//   idle       collecting  first StepReport of a step                     keep it
//   collecting decided     all stages reported (and DecideStep has come,  StepDecision to all
//                          when the driver decides)
//   collecting failed      as above, but a gradient is not finite and     Failed to the pipeline
//                          the loss is not scaled
//   decided    idle        all stages committed                           StepFinished to pipeline
// A stage can report the next step only after the pipeline has seen StepFinished, so steps never
// overlap here.

namespace troupe::mp {
namespace {

struct OptimizerState {
  static inline const char* name = "optimizer";

  OptimizerActorConfig config;
  Postbox postbox;
  v1::Key key;  // of the current step
  std::optional<LossScaler> scaler;
  double loss_scale = 1;  // of the current step
  std::optional<GradientNorm> reports;
  std::optional<DecideStep> driver_decision;
  std::optional<v1::StepDecision> decision;
  std::set<std::uint32_t> committed;
  bool failed = false;

  void start(OptimizerActorConfig c) {
    config = std::move(c);
    postbox = Postbox(config.mailer, optimizer_actor);
    if (config.loss_scaling) scaler.emplace(*config.loss_scaling);
  }

  std::string where() const { return "step " + std::to_string(key.step()); }

  void fail(const Error& error) {
    failed = true;
    v1::Message message;
    *message.mutable_key() = key;
    *message.mutable_failed() = to_proto(error, 0);
    postbox.send_control(config.pipeline, message);
  }

  void receive(const Delivery& delivery) {
    if (failed) return;
    auto message = parse_message(delivery);
    if (!message) return fail(message.error());
    const auto& from = message->key();
    if (from.job() != config.job || from.generation() != config.generation) return;
    switch (message->body_case()) {
      case v1::Message::kStepReport: return take(message->key(), message->step_report());
      case v1::Message::kStepCommitted: return take(message->key(), message->step_committed());
      default:
        return fail(
            internal_error(to_string(delivery.from), "unexpected message to the optimizer"));
    }
  }

  void take(const v1::Key& from, const v1::StepReport& report) {
    if (!reports) {
      reports.emplace(static_cast<std::uint32_t>(config.stages.size()));
      key = from;
      key.clear_value();
      key.clear_micro_batch();
    }
    if (from.step() != key.step() || decision)
      return fail(internal_error(where(), "stage " + std::to_string(report.stage()) +
                                              " reported step " + std::to_string(from.step())));
    if (auto added = reports->add(report); !added) return fail(added.error());
    decide_if_ready();
  }

  void take(const DecideStep& decide) {
    driver_decision = decide;
    decide_if_ready();
  }

  void decide_if_ready() {
    if (failed || decision || !reports || !reports->complete()) return;
    if (config.wait_for_driver && (!driver_decision || driver_decision->step != key.step())) return;
    decide();
  }

  /// The same decision for all stages, so that the step is committed on all or on none. [life:9]
  void decide() {
    const bool accumulate = driver_decision && driver_decision->accumulate;
    const bool finite = reports->finite();
    if (!finite && !scaler) return fail(not_finite());
    decision.emplace();
    for (const auto& rate : config.learning_rates) decision->add_lr(rate.at(key.step()));
    decision->set_accumulate(accumulate);
    loss_scale = scaler ? scaler->scale() : 1;
    decision->set_scale(clip_factor(norm(), config.clip_grad_norm) / loss_scale);
    // The gradients of an accumulation have one scale, so it changes with the last of them only.
    if (scaler && !accumulate) {
      decision->set_skip(!finite);
      scaler->step_done(!finite);
      decision->set_loss_scale(scaler->scale());
    }
    v1::Message message;
    *message.mutable_key() = key;
    *message.mutable_step_decision() = *decision;
    for (const auto& stage : config.stages) postbox.send_control(stage, message);
  }

  /// 2-norm of the gradients of the loss itself.
  double norm() const { return reports->norm() / loss_scale; }

  Error not_finite() const {
    const auto index = reports->first_non_finite();
    const auto culprit = index && *index < config.parameters.size()
                             ? "the gradient of " + config.parameters[*index]
                             : std::string("a gradient");
    return Error{ErrorCode::internal, where(), culprit + " is not finite",
                 "lower the learning rate, or set clip_grad_norm"};
  }

  void take(const v1::Key& from, const v1::StepCommitted& commit) {
    if (!decision || from.step() != key.step() || commit.stage() >= config.stages.size() ||
        !committed.insert(commit.stage()).second)
      return fail(
          internal_error(where(), "unexpected commit of stage " + std::to_string(commit.stage())));
    if (committed.size() == config.stages.size()) finish();
  }

  void finish() {
    v1::Message message;
    *message.mutable_key() = key;
    auto* finished = message.mutable_step_finished();
    finished->set_lr(decision->lr(0));
    finished->set_grad_norm_bits(bits_of(norm()));
    finished->set_skipped(decision->skip());
    if (scaler) finished->set_loss_scale(loss_scale);
    for (auto& times : reports->times()) *finished->add_times() = std::move(times);
    reports.reset();
    decision.reset();
    driver_decision.reset();
    committed.clear();
    postbox.send_control(config.pipeline, message);
  }
};

caf::behavior optimizer_behavior(caf::stateful_actor<OptimizerState>* self,
                                 OptimizerActorConfig config) {
  guard(*self);
  self->state.start(std::move(config));
  return {
      [self](const Delivery& delivery) { self->state.receive(delivery); },
      [self](const DecideStep& decide) { self->state.take(decide); },
  };
}

}  // namespace

caf::actor spawn_optimizer(caf::actor_system& system, OptimizerActorConfig config) {
  return system.spawn(optimizer_behavior, std::move(config));
}

}  // namespace troupe::mp
