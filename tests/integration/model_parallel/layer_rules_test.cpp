// Recomputation, wire types and bfloat16 with LibTorch's executors, from the fields of a job: a
// ResNet-18 trained for two steps has the same bits wherever it is cut, and recomputation changes
// none of them, running statistics included. The nodes are simulated in this process.

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "jobs/train_plan.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/stage_actor.hpp"

namespace troupe::mp::test {
namespace {

using First = std::vector<std::string>;  // the first layer of each stage but the first

/// Batches of 5 images in micro-batches of 2, 2 and 1.
v1::TrainJob train_job(const First& cut) {
  v1::TrainJob job;
  auto* resnet = job.mutable_model()->mutable_resnet();
  resnet->set_depth(18);
  resnet->set_num_classes(10);
  resnet->set_stem(v1::ResNet::STEM_SMALL);
  resnet->set_width_multiplier(0.125);
  for (std::size_t i = 0; i <= cut.size(); ++i) {
    auto* stage = job.add_stages();
    stage->set_node(i % 2 == 0 ? "a" : "b");
    stage->set_threads(1);
    if (i != 0) stage->set_first_layer(cut[i - 1]);
  }
  job.mutable_loss()->mutable_cross_entropy();
  job.mutable_optimizer()->mutable_sgd()->set_lr(0.1);
  auto* data = job.mutable_data()->mutable_synthetic();
  for (const int dimension : {3, 16, 16}) data->add_shape(dimension);
  data->set_classes(10);
  job.set_batch_size(5);
  job.set_micro_batch_size(2);
  job.set_steps(2);
  return job;
}

TrainingOutcome run(const v1::TrainJob& config) {
  auto job = troupe::testing::job_with_nodes({"a", "b"});
  job.set_seed(3);
  auto training = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::LocalSession session(job, {{stage_factory, libtorch_stages()}}, {});
  DriverOptions options;
  options.learning_rates = std::move(training.learning_rates);
  options.feeds[v1::Key::KIND_TRAIN] = std::move(training.training);
  const auto driver = value_of(Driver::start(session, training.plan, std::move(options)));
  TrainingOutcome outcome;
  for (std::uint64_t i = 0; i < training.steps; ++i)
    outcome.steps.push_back(value_of(driver->pipeline().train_step()));
  outcome.state = value_of(driver->pipeline().export_model());
  return outcome;
}

const std::vector<First> cuts{{"layer3"}, {"layer1.1", "layer2.1", "layer4", "fc", "loss"}};

void add_wire(v1::TrainJob& job, const std::string& layers, v1::DType dtype) {
  auto* wire = job.add_wire();
  wire->set_layers(layers);
  wire->set_dtype(dtype);
}

std::uint64_t peak_bytes(const TrainingOutcome& outcome, bool measured) {
  std::uint64_t sum = 0;
  for (const auto& times : outcome.steps.back().times)
    sum += measured ? times.peak_compute_bytes() : times.peak_live_bytes();
  return sum;
}

BOOST_AUTO_TEST_CASE(recomputation_changes_no_bit_and_takes_less_memory) {
  const auto kept = run(train_job({}));
  auto by_layer = train_job({});
  by_layer.add_recompute()->set_layers("layer?.?");
  const auto recomputed = run(by_layer);
  BOOST_TEST(same_state(recomputed.state, kept.state));
  BOOST_TEST(peak_bytes(recomputed, false) < peak_bytes(kept, false));
  for (const auto& cut : cuts) {
    auto by_stage = train_job(cut);
    for (auto& stage : *by_stage.mutable_stages()) stage.set_recompute(true);
    const auto outcome = run(by_stage);
    BOOST_TEST(same_state(outcome.state, kept.state));
    const auto whole = run(train_job(cut));
    BOOST_TEST(same_state(whole.state, kept.state));
    BOOST_TEST(peak_bytes(outcome, false) < peak_bytes(whole, false));
    BOOST_TEST(peak_bytes(outcome, true) < peak_bytes(whole, true));
  }
}

BOOST_AUTO_TEST_CASE(the_measured_peak_contains_the_activations) {
  const auto outcome = run(train_job({"layer3"}));
  for (const auto& times : outcome.steps.back().times)
    BOOST_TEST(times.peak_compute_bytes() > times.peak_live_bytes());
}

BOOST_AUTO_TEST_CASE(bfloat16_trains_the_same_float32_weights_wherever_it_is_cut) {
  auto whole = train_job({});
  whole.set_precision(v1::PRECISION_BFLOAT16);
  const auto reference = run(whole);
  for (const auto& [name, tensor] : reference.state)
    BOOST_TEST((tensor.dtype == v1::DTYPE_FLOAT32 || tensor.dtype == v1::DTYPE_INT64), name);
  BOOST_TEST(!same_state(reference.state, run(train_job({})).state));
  for (const auto& cut : cuts) {
    auto parts = train_job(cut);
    parts.set_precision(v1::PRECISION_BFLOAT16);
    const auto outcome = run(parts);
    BOOST_TEST(same_state(outcome.state, reference.state));
    BOOST_TEST(outcome.steps[1].totals.loss == reference.steps[1].totals.loss);
    parts.add_recompute()->set_layers("*");
    BOOST_TEST(same_state(run(parts).state, reference.state));
  }
}

BOOST_AUTO_TEST_CASE(wire_types_round_wherever_the_model_is_cut) {
  auto whole = train_job({});
  add_wire(whole, "layer2.*", v1::DTYPE_BFLOAT16);
  const auto reference = run(whole);
  BOOST_TEST(!same_state(reference.state, run(train_job({})).state));
  for (const auto& cut : cuts) {
    auto parts = train_job(cut);
    add_wire(parts, "layer2.*", v1::DTYPE_BFLOAT16);
    BOOST_TEST(same_state(run(parts).state, reference.state));
  }
}

}  // namespace
}  // namespace troupe::mp::test
