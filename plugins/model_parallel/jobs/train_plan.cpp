#include "jobs/train_plan.hpp"

#include <limits>
#include <string>
#include <utility>

#include "core/optimizer_config.hpp"

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
  request.batches = config.steps();
  TROUPE_ASSIGN(FeedConfig feed, open_feed(file, request));
  if (config.length_case() != v1::TrainJob::kEpochs) return feed;
  if (config.epochs() > std::numeric_limits<std::uint64_t>::max() / feed.plan.batches)
    return bad_input(file.locate("epochs"), std::to_string(config.epochs()) + " epochs of " +
                                                std::to_string(feed.plan.batches) +
                                                " batches are too many to count");
  feed.plan.batches *= config.epochs();
  return feed;
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

Result<std::vector<LearningRate>> plan_learning_rates(const JobFile& file,
                                                      const v1::TrainJob& config,
                                                      const FeedPlan& feed) {
  RunLength run;
  run.steps = feed.batches;
  run.steps_per_epoch = (feed.samples + feed.batch_size - 1) / feed.batch_size;
  return learning_rates(config.optimizer(), run,
                        [&](const std::string& path) { return file.locate(path); });
}

Result<Plan> cut_model(const JobFile& file, const v1::TrainJob& config) {
  TROUPE_ASSIGN(PlanRequest request,
                plan_request(file, config.model(), config.stages(), config.precision()));
  request.loss = config.loss();
  request.schedule = config.schedule();
  request.optimizer = config.optimizer();
  request.rules.recompute.assign(config.recompute().begin(), config.recompute().end());
  request.rules.wire.assign(config.wire().begin(), config.wire().end());
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
  TROUPE_TRY(check_feed(file, train.plan, train.training));
  if (config.has_evaluation()) {
    TROUPE_ASSIGN(train.evaluation, open_evaluation(file, config));
    TROUPE_TRY(check_feed(file, train.plan, *train.evaluation));
  }
  if (!config.init_from().empty()) {
    TROUPE_ASSIGN(train.weights, read_weights(train.plan, config.init_from()));
  }
  train.steps = train.training.plan.batches;
  TROUPE_ASSIGN(train.learning_rates, plan_learning_rates(file, config, train.training.plan));
  train.micro_batches =
      (config.batch_size() + config.micro_batch_size() - 1) / config.micro_batch_size();
  return train;
}

}  // namespace troupe::mp
