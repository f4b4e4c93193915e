#include "jobs/train_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/frequency_loss.hpp"
#include "core/optimizer_config.hpp"
#include "core/step_batches.hpp"

namespace troupe::mp {
namespace {

FeedRequest feed_request(const JobFile& file, const v1::TrainJob& config) {
  FeedRequest request;
  request.seed = file.job.seed();
  request.dtype = dtype_of(config.precision());
  request.loss = config.loss();
  return request;
}

Result<FeedConfig> open_training(const JobFile& file, const v1::TrainJob& config) {
  auto request = feed_request(file, config);
  request.data = config.data();
  request.path = "data";
  request.batch_size = config.batch_size();
  request.micro_batch_size = config.micro_batch_size();
  request.batches = config.steps();  // settled below; 0 refuses data without an end
  return open_feed(file, request);
}

std::uint32_t batches_in_step(const v1::TrainJob& config) {
  return std::max<std::uint32_t>(config.accumulate_batches(), 1);
}

StepBatches step_batches(const v1::TrainJob& config, const FeedPlan& feed) {
  return {(feed.samples + feed.batch_size - 1) / feed.batch_size, batches_in_step(config)};
}

/// How many steps the job takes, and so how many batches.
Result<std::uint64_t> settle_length(const JobFile& file, const v1::TrainJob& config,
                                    FeedPlan& feed) {
  const StepBatches batches = step_batches(config, feed);
  const bool epochs = config.length_case() == v1::TrainJob::kEpochs;
  const std::uint64_t in_epoch = batches.steps_in_epoch();
  if (epochs && config.epochs() > std::numeric_limits<std::uint64_t>::max() / in_epoch)
    return bad_input(file.locate("epochs"), std::to_string(config.epochs()) + " epochs of " +
                                                std::to_string(in_epoch) +
                                                " steps are too many to count");
  const std::uint64_t steps = epochs ? config.epochs() * in_epoch : config.steps();
  const auto all = batches.batches_in(steps);
  if (!all)
    return bad_input(file.locate(epochs ? "epochs" : "steps"),
                     std::to_string(steps) + " steps of " +
                         std::to_string(batches_in_step(config)) +
                         " batches are too many to count");
  feed.batches = *all;
  return steps;
}

/// An evaluation batch is one micro-batch: nothing is kept of it for a backward.
Result<FeedConfig> open_evaluation(const JobFile& file, const v1::TrainJob& config) {
  auto request = feed_request(file, config);
  request.data = config.evaluation().data();
  request.path = "evaluation.data";
  request.batch_size = config.evaluation().batch_size() != 0 ? config.evaluation().batch_size()
                                                             : config.micro_batch_size();
  request.micro_batch_size = request.batch_size;
  return open_feed(file, request);
}

Result<double> frequency_loss_of(const JobFile& file, const TrainPlan& train) {
  const auto training = train.training.source->target_counts();
  const auto held_out = train.evaluation->source->target_counts();
  if (!training || !held_out)
    return bad_input(file.locate("evaluation.compare_with_frequencies"),
                     "this data does not count its targets", "leave it out; only text does");
  if (training->size() != held_out->size())
    return bad_input(file.locate("evaluation.compare_with_frequencies"),
                     "training and evaluation have different numbers of tokens",
                     "use one tokenizer for both");
  return frequency_loss(*training, *held_out);
}

Result<std::vector<LearningRate>> plan_learning_rates(const JobFile& file,
                                                      const v1::TrainJob& config,
                                                      const FeedPlan& feed, std::uint64_t steps) {
  RunLength run;
  run.steps = steps;
  run.steps_per_epoch = step_batches(config, feed).steps_in_epoch();
  return learning_rates(config.optimizer(), run,
                        [&](const std::string& path) { return file.locate(path); });
}

/// Of a full step.
Result<std::uint32_t> micro_batches_in_step(const JobFile& file, const v1::TrainJob& config) {
  const std::uint64_t in_batch =
      (config.batch_size() + config.micro_batch_size() - 1) / config.micro_batch_size();
  const std::uint64_t count = in_batch * batches_in_step(config);
  if (count > std::numeric_limits<std::uint32_t>::max())
    return bad_input(file.locate("accumulate_batches"),
                     std::to_string(count) + " micro-batches in a step are too many to count",
                     "accumulate fewer batches, or make micro-batches larger");
  return static_cast<std::uint32_t>(count);
}

Result<Plan> cut_model(const JobFile& file, const v1::TrainJob& config) {
  TROUPE_ASSIGN(PlanRequest request, plan_request(file, config));
  request.loss = config.loss();
  request.schedule = config.schedule();
  request.optimizer = config.optimizer();
  request.batch_norm = config.batch_norm();
  request.rules.recompute.assign(config.recompute().begin(), config.recompute().end());
  if (config.has_loss_scaling()) request.loss_scaling = config.loss_scaling();
  return make_plan(request);
}

}  // namespace

Result<TrainPlan> make_train_plan(const JobFile& file, const v1::TrainJob& config) {
  TROUPE_TRY(check_micro_batch_size(file, config.batch_size(), config.micro_batch_size()));
  TROUPE_TRY(check_clip_grad_norm(config.clip_grad_norm(), file.locate("clip_grad_norm")));
  TrainPlan train;
  TROUPE_ASSIGN(train.plan, cut_model(file, config));
  TROUPE_ASSIGN(train.training, open_training(file, config));
  TROUPE_TRY(check_feed(file, train.plan, train.training, "data"));
  TROUPE_ASSIGN(train.steps, settle_length(file, config, train.training.plan));
  train.batches_in_step = batches_in_step(config);
  TROUPE_ASSIGN(train.micro_batches, micro_batches_in_step(file, config));
  if (config.has_evaluation()) {
    TROUPE_ASSIGN(train.evaluation, open_evaluation(file, config));
    TROUPE_TRY(check_feed(file, train.plan, *train.evaluation, "evaluation.data"));
    if (config.evaluation().compare_with_frequencies()) {
      TROUPE_ASSIGN(train.frequency_loss, frequency_loss_of(file, train));
    }
  }
  if (!config.init_from().empty()) {
    TROUPE_ASSIGN(train.weights, read_weights(train.plan, config.init_from()));
  }
  TROUPE_ASSIGN(train.learning_rates,
                plan_learning_rates(file, config, train.training.plan, train.steps));
  return train;
}

}  // namespace troupe::mp
