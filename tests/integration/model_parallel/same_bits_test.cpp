// The weights of a ResNet-18 after three steps do not depend, in any bit, on how it is cut, where
// its stages are, the schedule, or the timing; nor do they with steps of several batches, targets
// that are ignored and deferred batch norms. All nodes are simulated in this process, where every
// run takes a different order of events; the executors are the real ones.

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "jobs/train_plan.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/stage_actor.hpp"

namespace troupe::mp::test {
namespace {

using First = std::vector<std::string>;  // the first layer of each stage but the first

const First layers = {"layer1.0", "layer1.1", "layer2.0", "layer2.1", "layer3.0",
                      "layer3.1", "layer4.0", "layer4.1", "fc",       "loss"};

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("node" + std::to_string(i));
  return names;
}

/// Momentum, clipping, random floats, and a last micro-batch of a single sample.
v1::TrainJob train_job(const First& cut, std::size_t nodes, v1::Schedule schedule) {
  v1::TrainJob job;
  auto* resnet = job.mutable_model()->mutable_resnet();
  resnet->set_depth(18);
  resnet->set_num_classes(10);
  resnet->set_stem(v1::ResNet::STEM_SMALL);
  resnet->set_width_multiplier(0.125);
  for (std::size_t i = 0; i <= cut.size(); ++i) {
    auto* stage = job.add_stages();
    stage->set_node("node" + std::to_string(i % nodes));
    stage->set_threads(1);
    if (i != 0) stage->set_first_layer(cut[i - 1]);
  }
  job.mutable_loss()->mutable_cross_entropy();
  auto* sgd = job.mutable_optimizer()->mutable_sgd();
  sgd->set_lr(0.1);
  sgd->set_momentum(0.9);
  auto* data = job.mutable_data()->mutable_synthetic();
  for (const int dimension : {3, 16, 16}) data->add_shape(dimension);
  data->set_classes(10);
  job.set_batch_size(7);
  job.set_micro_batch_size(2);
  job.set_schedule(schedule);
  job.set_steps(3);
  job.set_clip_grad_norm(0.5);
  return job;
}

/// Steps of batches of 5 and 5, of 5 and 2, and of 5 and 5 of the next epoch, in which class 3 does
/// not count; statistics are deferred.
void accumulate(v1::TrainJob& job) {
  job.mutable_loss()->mutable_cross_entropy()->set_ignore_index(3);
  job.mutable_loss()->mutable_cross_entropy()->set_label_smoothing(0.1);
  job.mutable_data()->mutable_synthetic()->set_samples(17);
  job.set_batch_size(5);
  job.set_accumulate_batches(2);
  job.set_batch_norm(v1::BATCH_NORM_DEFERRED);
}

TrainingOutcome run(const v1::TrainJob& config, std::size_t nodes, std::uint64_t seed) {
  auto job = troupe::testing::job_with_nodes(names(nodes));
  job.set_seed(3);
  auto training = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::SimulationOptions simulation;
  simulation.seed = seed;
  troupe::testing::LocalSession session(job, {{stage_factory, libtorch_stages()}}, simulation);
  DriverOptions options;
  options.schedule = config.schedule();
  options.batches_in_step = training.batches_in_step;
  options.learning_rates = std::move(training.learning_rates);
  options.clip_grad_norm = config.clip_grad_norm();
  options.feeds[v1::Key::KIND_TRAIN] = std::move(training.training);
  const auto driver = value_of(Driver::start(session, training.plan, std::move(options)));
  TrainingOutcome outcome;
  outcome.initial = value_of(driver->pipeline().export_model());
  for (std::uint64_t i = 0; i < training.steps; ++i)
    outcome.steps.push_back(value_of(driver->pipeline().train_step()));
  outcome.state = value_of(driver->pipeline().export_model());
  return outcome;
}

TrainingOutcome run(const First& cut, std::size_t nodes, v1::Schedule schedule,
                    std::uint64_t seed) {
  return run(train_job(cut, nodes, schedule), nodes, seed);
}

/// One stage on one node.
const TrainingOutcome& reference() {
  static const TrainingOutcome outcome = run({}, 1, v1::SCHEDULE_GPIPE, 1);
  return outcome;
}

void expect_same_bits(const First& cut, std::size_t nodes) {
  static std::uint64_t seed = 100;
  for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
    ++seed;
    BOOST_TEST_CONTEXT("first cut before " << cut.front() << ", " << cut.size() + 1 << " stages, "
                                           << nodes << " nodes, schedule " << schedule << ", seed "
                                           << seed) {
      const auto outcome = run(cut, nodes, schedule, seed);
      BOOST_TEST(same_state(outcome.initial, reference().initial));
      BOOST_TEST(same_state(outcome.state, reference().state));
      for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
        BOOST_TEST(outcome.steps[i].totals.loss == reference().steps[i].totals.loss);
        BOOST_TEST(outcome.steps[i].grad_norm == reference().steps[i].grad_norm);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(three_steps_change_every_tensor_and_are_clipped) {
  const auto& outcome = reference();
  for (const auto& [name, tensor] : outcome.state)
    BOOST_TEST(!same_state({{name, tensor}}, {{name, outcome.initial.at(name)}}), name);
  for (const auto& step : outcome.steps) BOOST_TEST(step.grad_norm > 0.5);
}

BOOST_AUTO_TEST_CASE(every_single_cut) {
  for (const auto& layer : layers) expect_same_bits({layer}, 2);
}

BOOST_AUTO_TEST_CASE(several_cuts_on_as_many_nodes) {
  expect_same_bits({"layer2", "layer4"}, 3);
  expect_same_bits({"layer1.1", "layer2.1", "layer3.1", "fc"}, 5);
}

BOOST_AUTO_TEST_CASE(several_stages_on_a_node) {
  expect_same_bits({"layer3"}, 1);
  expect_same_bits({"layer1", "layer2", "layer3", "layer4"}, 1);
  expect_same_bits({"layer1", "layer2", "layer3", "layer4"}, 2);
}

BOOST_AUTO_TEST_CASE(accumulated_steps_with_deferred_statistics) {
  const auto accumulated = [](const First& cut, std::size_t nodes, v1::Schedule schedule,
                              std::uint64_t seed) {
    auto job = train_job(cut, nodes, schedule);
    accumulate(job);
    return run(job, nodes, seed);
  };
  const auto uncut = accumulated({}, 1, v1::SCHEDULE_GPIPE, 1);
  BOOST_REQUIRE_EQUAL(uncut.steps.size(), 3u);
  BOOST_TEST(uncut.steps[0].totals.samples == 10u);
  BOOST_TEST(uncut.steps[1].totals.samples == 7u);
  BOOST_TEST(uncut.steps[2].totals.samples == 10u);
  BOOST_TEST(uncut.steps[0].totals.counted < 10u);
  std::uint64_t seed = 200;
  for (const auto& cut : std::vector<First>{{"layer1.1"}, {"layer2", "layer4"}, {"loss"}, layers})
    for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B}) {
      ++seed;
      BOOST_TEST_CONTEXT(cut.size() + 1 << " stages, schedule " << schedule << ", seed " << seed) {
        const auto outcome = accumulated(cut, 3, schedule, seed);
        BOOST_TEST(same_state(outcome.state, uncut.state));
        for (std::size_t i = 0; i < outcome.steps.size(); ++i)
          BOOST_TEST(outcome.steps[i].totals.loss == uncut.steps[i].totals.loss);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_stage_for_each_layer) {
  for (const std::size_t nodes : {1, 3, 11}) expect_same_bits(layers, nodes);
}

}  // namespace
}  // namespace troupe::mp::test
