#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/data_actor.hpp"
#include "core/learning_rate.hpp"
#include "core/plan.hpp"
#include "jobs/job_setup.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// A training job, checked and worked out, with its files open.
struct TrainPlan {
  Plan plan;
  FeedConfig training;
  std::optional<FeedConfig> evaluation;
  std::optional<double> frequency_loss;  ///< on the evaluation's data, where the job asks for it
  std::optional<TensorMap> weights;      ///< to start from
  std::uint64_t steps = 0;
  std::uint64_t batches_in_step = 1;
  std::vector<LearningRate> learning_rates;  ///< by group of parameters
  std::uint32_t micro_batches = 0;           ///< of a full step
};

/// Checks what ranges cannot say, opens the data, cuts the model. Touches no node.
Result<TrainPlan> make_train_plan(const JobFile& file, const v1::TrainJob& config);

}  // namespace troupe::mp
