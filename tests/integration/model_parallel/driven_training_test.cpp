// A C++ program that drives a model on two nodes with a loss of its own, as in PyTorch's RPC
// example, on LibTorch in float64: the same gradients as a training job's, and as one forward's
// over all that was accumulated. The nodes are simulated in this process.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "data/safetensors.hpp"
#include "jobs/train_plan.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/stage_actor.hpp"
#include "support/process.hpp"
#include "troupe/model_parallel/pipeline.hpp"

namespace troupe::mp::test {
namespace {

constexpr std::int64_t classes = 10;
constexpr std::uint64_t seed = 3;

v1::Model small_resnet() {
  v1::Model model;
  auto* resnet = model.mutable_resnet();
  resnet->set_depth(18);
  resnet->set_num_classes(classes);
  resnet->set_stem(v1::ResNet::STEM_SMALL);
  resnet->set_width_multiplier(0.125);
  return model;
}

std::vector<v1::Stage> two_stages() {
  std::vector<v1::Stage> stages(2);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].set_node(i == 0 ? "a" : "b");
    stages[i].set_threads(1);
  }
  stages[1].set_first_layer("layer3");
  return stages;
}

v1::Optimizer sgd_with_momentum() {
  v1::Optimizer optimizer;
  optimizer.mutable_sgd()->set_lr(0.05);
  optimizer.mutable_sgd()->set_momentum(0.9);
  return optimizer;
}

HostTensor random_tensor(const std::string& name, Shape shape) {
  v1::Parameter tensor;
  tensor.set_name(name);
  for (const auto size : shape) tensor.add_shape(size);
  tensor.mutable_init()->set_normal_std(1);
  return initial_tensor(tensor, seed, v1::DTYPE_FLOAT64);
}

HostTensor random_images(const std::string& name, std::int64_t count) {
  return random_tensor(name, {count, 3, 16, 16});
}

std::unique_ptr<troupe::testing::LocalSession> new_session() {
  auto job = troupe::testing::job_with_nodes({"a", "b"});
  job.set_seed(seed);
  return std::make_unique<troupe::testing::LocalSession>(
      job, troupe::testing::LocalSession::Factories{{stage_factory, libtorch_stages()}});
}

/// A fresh model, driven call by call.
struct Driven {
  explicit Driven(v1::BatchNormStatistics batch_norm = v1::BATCH_NORM_PER_MICRO_BATCH)
      : session(new_session()) {
    PipelineOptions options;
    options.model = small_resnet();
    options.stages = two_stages();
    options.optimizer = sgd_with_momentum();
    options.precision = v1::PRECISION_FLOAT64;
    options.seed = seed;
    options.batch_norm = batch_norm;
    pipeline = value_of(spawn_pipeline(*session, options));
  }

  /// What `gradient` at the outputs of these images adds to the parameters' gradients.
  void accumulate(const HostTensor& images, const HostTensor& gradient) const {
    value_of(pipeline->forward(images, 2));
    BOOST_REQUIRE(pipeline->backward(gradient).ok());
  }

  TensorMap stepped() const {
    value_of(pipeline->step());
    return value_of(pipeline->state());
  }

  std::unique_ptr<troupe::testing::LocalSession> session;
  std::unique_ptr<Pipeline> pipeline;
};

struct OwnLoss {
  double value = 0;
  HostTensor gradient;
};

/// Mean over all elements of (output - target)^2.
OwnLoss mean_squared_error(const HostTensor& outputs, const HostTensor& targets) {
  OwnLoss loss;
  loss.gradient = {v1::DTYPE_FLOAT64, outputs.shape, Blob::uninitialized(outputs.data.size())};
  auto* gradient = reinterpret_cast<double*>(loss.gradient.data.mutable_data());
  const std::size_t elements = outputs.data.size() / sizeof(double);
  for (std::size_t i = 0; i < elements; ++i) {
    const double difference = outputs.as<double>()[i] - targets.as<double>()[i];
    loss.value += difference * difference / static_cast<double>(elements);
    gradient[i] = 2 * difference / static_cast<double>(elements);
  }
  return loss;
}

/// Largest difference of two states, each tensor's relative to its largest element.
double difference(const TensorMap& a, const TensorMap& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double worst = 0;
  for (const auto& [name, left] : a) {
    if (left.dtype != v1::DTYPE_FLOAT64) continue;
    const auto& right = b.at(name);
    double most = 1e-30;
    double apart = 0;
    for (std::size_t i = 0; i < left.data.size() / sizeof(double); ++i) {
      most = std::max(most, std::abs(right.as<double>()[i]));
      apart = std::max(apart, std::abs(left.as<double>()[i] - right.as<double>()[i]));
    }
    worst = std::max(worst, apart / most);
  }
  return worst;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

}  // namespace

BOOST_AUTO_TEST_SUITE(driven_training)

BOOST_AUTO_TEST_CASE(a_mean_squared_error_of_ones_own_trains_as_that_of_a_job) {
  const std::int64_t batch = 7;  // micro-batches of 2, 2, 2 and 1
  const auto images = random_images("inputs", 2 * batch);
  const auto targets = random_tensor("targets", {2 * batch, classes});
  const troupe::test::TemporaryDirectory files;
  const std::string data = (files.path() / "data.safetensors").string();
  BOOST_REQUIRE(write_safetensors(data, {{"inputs", images}, {"targets", targets}}).ok());

  v1::TrainJob config;
  *config.mutable_model() = small_resnet();
  for (const auto& stage : two_stages()) *config.add_stages() = stage;
  config.mutable_loss()->mutable_mse();
  *config.mutable_optimizer() = sgd_with_momentum();
  config.mutable_data()->mutable_tensors()->set_path(data);
  config.set_batch_size(batch);
  config.set_micro_batch_size(2);
  config.set_steps(2);
  config.set_precision(v1::PRECISION_FLOAT64);
  config.set_schedule(v1::SCHEDULE_GPIPE);
  const auto session = new_session();
  auto plan = value_of(make_train_plan(JobFile{session->job(), nullptr}, config));
  DriverOptions options;
  options.schedule = config.schedule();
  options.learning_rates = std::move(plan.learning_rates);
  options.feeds[v1::Key::KIND_TRAIN] = std::move(plan.training);
  const auto job = value_of(Driver::start(*session, plan.plan, std::move(options)));

  const Driven driven;
  for (std::int64_t step = 0; step < 2; ++step) {
    const auto rows = [&](const HostTensor& all) {
      return all.rows(step * batch, (step + 1) * batch);
    };
    const auto outputs = value_of(driven.pipeline->forward(rows(images), 2));
    const auto loss = mean_squared_error(outputs, rows(targets));
    BOOST_REQUIRE(driven.pipeline->backward(loss.gradient).ok());
    const double norm = value_of(driven.pipeline->step());
    const auto trained = value_of(job->pipeline().train_step());
    BOOST_TEST(close(loss.value, trained.totals.loss));
    BOOST_TEST(close(norm, trained.grad_norm));
  }
  BOOST_TEST(difference(value_of(driven.pipeline->state()),
                        value_of(job->pipeline().export_model())) < 1e-12);
}

BOOST_AUTO_TEST_CASE(gradients_of_three_backwards_are_those_of_one_over_all_samples) {
  const auto images = random_images("inputs", 12);
  const auto gradient = random_tensor("gradient", {12, classes});
  const Driven by_fours;
  for (std::int64_t begin = 0; begin < 12; begin += 4)
    by_fours.accumulate(images.rows(begin, begin + 4), gradient.rows(begin, begin + 4));
  const Driven at_once;
  at_once.accumulate(images, gradient);
  const Driven last_only;
  last_only.accumulate(images.rows(8, 12), gradient.rows(8, 12));

  const auto accumulated = by_fours.stepped();
  BOOST_TEST(difference(accumulated, at_once.stepped()) < 1e-12);
  BOOST_TEST(difference(accumulated, last_only.stepped()) > 1e-3);
}

BOOST_AUTO_TEST_CASE(deferred_statistics_wait_for_the_step_and_pool_all_backwards) {
  const auto images = random_images("inputs", 12);
  const auto gradient = random_tensor("gradient", {12, classes});
  const Driven by_fours(v1::BATCH_NORM_DEFERRED);
  for (std::int64_t begin = 0; begin < 12; begin += 4)
    by_fours.accumulate(images.rows(begin, begin + 4), gradient.rows(begin, begin + 4));
  const Driven at_once(v1::BATCH_NORM_DEFERRED);
  at_once.accumulate(images, gradient);
  const Driven each_time;
  each_time.accumulate(images, gradient);

  const auto pooled = by_fours.stepped();
  BOOST_TEST(difference(pooled, at_once.stepped()) < 1e-12);
  BOOST_TEST(pooled.at("bn1.num_batches_tracked").as<std::int64_t>()[0] == 1);
  const auto each = each_time.stepped();
  BOOST_TEST(each.at("bn1.num_batches_tracked").as<std::int64_t>()[0] == 6);
  const std::string mean = "layer4.1.bn2.running_mean";
  BOOST_TEST(difference({{mean, pooled.at(mean)}}, {{mean, each.at(mean)}}) > 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp::test
