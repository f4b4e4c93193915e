#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "troupe/address.hpp"
#include "troupe/mailer.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp {

struct PipelineActorConfig {
  Mailer mailer;
  std::string job;
  std::uint64_t generation = 0;
  std::vector<ActorAddress> stages;  ///< in pipeline order
  v1::Schedule schedule = v1::SCHEDULE_ONE_F_ONE_B;
  caf::actor data;
  caf::actor optimizer;
  std::uint64_t batches_in_step = 1;     ///< of training, but for the end of an epoch
  std::uint64_t evaluation_batches = 0;  ///< in the evaluation feed
  std::uint64_t prediction_batches = 0;  ///< in the prediction feed
};

/// Drives the stages: admits micro-batches within the schedule's window, follows steps,
/// evaluations and predictions to their end, moves state in and out, and turns the first failure
/// of anything into the answer to the command in progress and all later ones. Commands are those
/// of driver_messages.hpp, one at a time. Gets NodeDown, Interrupted and RuntimeFailure as a
/// subscriber of the session.
caf::actor spawn_pipeline_actor(caf::actor_system& system, PipelineActorConfig config);

}  // namespace troupe::mp
