#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "core/learning_rate.hpp"
#include "troupe/address.hpp"
#include "troupe/mailer.hpp"

namespace troupe::mp {

struct OptimizerActorConfig {
  Mailer mailer;
  std::string job;
  std::uint64_t generation = 0;
  ActorAddress pipeline;
  std::vector<ActorAddress> stages;
  /// Of all parameters, in the model's order: names the culprit in errors.
  std::vector<std::string> parameters;
  std::vector<LearningRate> learning_rates;     ///< by group of parameters
  double clip_grad_norm = 0;                    ///< 0: no clipping
  std::optional<v1::LossScaling> loss_scaling;  ///< none: the loss is not scaled
  /// Decide only when DecideStep has come from the pipeline actor (a C++ driver's `step`).
  bool wait_for_driver = false;
};

/// Decides each step for all stages at once: gathers their reports, adds up the global gradient
/// norm, tells every stage what to do, and reports the step to the pipeline once all have
/// committed. Non-finite gradients fail the job, unless the loss is scaled: then the step is
/// skipped on all stages and the scale shrinks (see LossScaler). Messages of another job or
/// generation are dropped.
caf::actor spawn_optimizer(caf::actor_system& system, OptimizerActorConfig config);

}  // namespace troupe::mp
