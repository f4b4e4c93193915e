#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "core/batch_feed.hpp"
#include "core/loss_config.hpp"
#include "data/data_source.hpp"
#include "troupe/address.hpp"
#include "troupe/mailer.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/spawn.hpp"

namespace troupe::mp {

/// A data set that batches are taken from in order.
struct FeedConfig {
  std::shared_ptr<DataSource> source;  ///< handed to a builder actor, used by nobody else after
  FeedPlan plan;
  std::uint32_t micro_batch_size = 1;
};

struct DataActorConfig {
  Mailer mailer;
  std::string job;
  std::uint64_t generation = 0;
  ExecutionPolicy policy = ExecutionPolicy::detached;
  /// Who reads which field of a batch.
  std::map<std::string, std::vector<ActorAddress>> readers;
  std::map<v1::Key::Kind, FeedConfig> feeds;
  /// Over what the loss is a mean: gives each micro-batch its weight.
  TargetCount count;
};

/// Cuts batches into micro-batches and sends each field straight to the stages that read it, when
/// the pipeline admits the micro-batch. Batches are built ahead by a builder actor for each feed,
/// within the feed's byte budget, so that this actor never computes. Talks to one pipeline actor,
/// the sender of OpenRun.
caf::actor spawn_data_actor(caf::actor_system& system, DataActorConfig config);

}  // namespace troupe::mp
