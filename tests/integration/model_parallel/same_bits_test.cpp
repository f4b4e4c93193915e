// The weights of a ResNet-18 after three steps do not depend, in any bit, on how it is cut, where
// its stages are, the schedule, or the timing. All nodes are simulated in this process, where every
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

TrainingOutcome run(const First& cut, std::size_t nodes, v1::Schedule schedule,
                    std::uint64_t seed) {
  const auto config = train_job(cut, nodes, schedule);
  auto job = troupe::testing::job_with_nodes(names(nodes));
  job.set_seed(3);
  auto training = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::SimulationOptions simulation;
  simulation.seed = seed;
  troupe::testing::LocalSession session(job, {{stage_factory, libtorch_stages()}}, simulation);
  DriverOptions options;
  options.schedule = schedule;
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

BOOST_AUTO_TEST_CASE(a_stage_for_each_layer) {
  for (const std::size_t nodes : {1, 3, 11}) expect_same_bits(layers, nodes);
}

}  // namespace
}  // namespace troupe::mp::test
