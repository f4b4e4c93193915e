// A small model of every family, with dropout where it has some: the weights after two steps are
// the same in every bit on one stage, on two, and with a stage for each layer. The nodes are
// simulated in this process; the executors are the real ones.

#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "core/model_catalog.hpp"
#include "core/random.hpp"
#include "data/safetensors.hpp"
#include "jobs/train_plan.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/stage_actor.hpp"
#include "support/process.hpp"

namespace troupe::mp::test {
namespace {

using First = std::vector<std::string>;  // the first layer of each stage but the first

struct Case {
  std::string model;
  Shape inputs;  // of one sample
  Shape outputs;
  std::uint64_t vocabulary = 0;
};

constexpr std::int64_t samples = 10;

v1::Model model_of(const Case& c) {
  v1::Model model;
  if (!google::protobuf::TextFormat::ParseFromString(c.model, &model))
    throw std::runtime_error("cannot be read: " + c.model);
  return model;
}

First layers_of(const v1::Model& model) {
  First names;
  for (const auto& layer : value_of(list_layers(model))) names.push_back(layer.name());
  names.push_back("loss");
  return names;
}

HostTensor random_numbers(const std::string& name, Shape shape) {
  v1::Parameter numbers;
  numbers.set_name(name);
  numbers.add_shape(samples);
  for (const std::int64_t size : shape) numbers.add_shape(size);
  numbers.mutable_init()->set_normal_std(1);
  return initial_tensor(numbers, 21, v1::DTYPE_FLOAT32);
}

HostTensor random_tokens(const Shape& shape, std::uint64_t vocabulary) {
  HostTensor tokens{v1::DTYPE_INT64, shape, {}};
  tokens.shape.insert(tokens.shape.begin(), samples);
  const std::uint64_t count = value_of(element_count(tokens.shape));
  tokens.data = Blob::uninitialized(count * sizeof(std::int64_t));
  auto* ids = reinterpret_cast<std::int64_t*>(tokens.data.mutable_data());
  for (std::uint64_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int64_t>(index_at(17, i, vocabulary));
  return tokens;
}

std::string write_data(const Case& c, const troupe::test::TemporaryDirectory& directory) {
  const auto path = directory.path() / "data.safetensors";
  const HostTensor inputs = c.vocabulary == 0 ? random_numbers("inputs", c.inputs)
                                              : random_tokens(c.inputs, c.vocabulary);
  const auto written = write_safetensors(
      path, {{"inputs", inputs}, {"targets", random_numbers("targets", c.outputs)}});
  if (!written.ok()) throw std::runtime_error(written.error().to_string());
  return path.string();
}

/// Two batches of 5, each in micro-batches of 2, 2 and 1.
v1::TrainJob train_job(const v1::Model& model, const std::string& data, const First& cut,
                       std::size_t nodes, v1::Schedule schedule) {
  v1::TrainJob job;
  *job.mutable_model() = model;
  for (std::size_t i = 0; i <= cut.size(); ++i) {
    auto* stage = job.add_stages();
    stage->set_node("node" + std::to_string(i % nodes));
    stage->set_threads(1);
    if (i != 0) stage->set_first_layer(cut[i - 1]);
  }
  job.mutable_loss()->mutable_mse();
  job.mutable_optimizer()->mutable_sgd()->set_lr(0.1);
  job.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  job.mutable_data()->mutable_tensors()->set_path(data);
  job.set_batch_size(5);
  job.set_micro_batch_size(2);
  job.set_schedule(schedule);
  job.set_steps(2);
  job.set_clip_grad_norm(0.5);
  return job;
}

TrainingOutcome run(const v1::TrainJob& config, std::size_t nodes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i) names.push_back("node" + std::to_string(i));
  auto job = troupe::testing::job_with_nodes(names);
  job.set_seed(3);
  auto training = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::SimulationOptions simulation;
  simulation.seed = 10 + nodes;
  troupe::testing::LocalSession session(job, {{stage_factory, libtorch_stages()}}, simulation);
  DriverOptions options;
  options.schedule = config.schedule();
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

void check_equal(const TrainingOutcome& outcome, const TrainingOutcome& expected) {
  BOOST_TEST(same_state(outcome.initial, expected.initial));
  BOOST_TEST(same_state(outcome.state, expected.state));
  BOOST_REQUIRE_EQUAL(outcome.steps.size(), expected.steps.size());
  for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
    BOOST_TEST(outcome.steps[i].totals.loss == expected.steps[i].totals.loss);
    BOOST_TEST(outcome.steps[i].grad_norm == expected.steps[i].grad_norm);
  }
}

void check_model(const Case& c) {
  const v1::Model model = model_of(c);
  const First layers = layers_of(model);
  const troupe::test::TemporaryDirectory directory;
  const std::string data = write_data(c, directory);
  const auto trained = [&](const First& cut, std::size_t nodes, v1::Schedule schedule) {
    return run(train_job(model, data, cut, nodes, schedule), nodes);
  };
  const auto whole = trained({}, 1, v1::SCHEDULE_GPIPE);
  BOOST_TEST(!same_state(whole.initial, whole.state));
  BOOST_TEST_CONTEXT("two stages") {
    check_equal(trained({layers[layers.size() / 2]}, 2, v1::SCHEDULE_GPIPE), whole);
  }
  BOOST_TEST_CONTEXT("a stage for each layer") {
    check_equal(trained({layers.begin() + 1, layers.end()}, 3, v1::SCHEDULE_ONE_F_ONE_B), whole);
  }
}

/// Residual networks of two blocks for images of 16x16.
std::string bottlenecks(const std::string& fields) {
  return "resnet { blocks: [1, 1] block: BLOCK_BOTTLENECK stem: STEM_SMALL num_classes: 10 "
         "width_multiplier: 0.25 " +
         fields + " }";
}

/// "a" is read by the layer after it and, past all others, by "sum" and "again": with a stage for
/// each layer it crosses several of them.
const std::string skip_connections = R"(layers {
  layers { name: "a" kind: "linear" attributes { key: "in_features" value: 12 }
           attributes { key: "out_features" value: 8 } }
  layers { name: "norm" kind: "layer_norm" attributes { key: "features" value: 8 } }
  layers { name: "b" kind: "linear" attributes { key: "in_features" value: 8 }
           attributes { key: "out_features" value: 8 } }
  layers { name: "gelu" kind: "gelu" attributes { key: "tanh_approximation" value: 1 } }
  layers { name: "path" kind: "drop_path" attributes { key: "rate" value: 0.4 } }
  layers { name: "sum" kind: "add" reads { layer: "path" } reads { layer: "a" } }
  layers { name: "drop" kind: "dropout" attributes { key: "rate" value: 0.2 } }
  layers { name: "again" kind: "add" reads { layer: "drop" } reads { layer: "a" }
           reads { layer: "norm" } }
  layers { name: "c" kind: "linear" attributes { key: "in_features" value: 8 }
           attributes { key: "out_features" value: 10 } } })";

}  // namespace

BOOST_AUTO_TEST_SUITE(same_bits_of_models)

BOOST_AUTO_TEST_CASE(resnext) {
  check_model({bottlenecks("groups: 4 width_per_group: 16"), {3, 16, 16}, {10}});
}

BOOST_AUTO_TEST_CASE(wide_resnet) {
  check_model({bottlenecks("width_per_group: 128"), {3, 16, 16}, {10}});
}

BOOST_AUTO_TEST_CASE(vgg) {
  check_model(
      {"vgg { depth: 11 batch_norm: true width_multiplier: 0.0625 classifier_width: 12 "
       "num_classes: 10 }",
       {3, 64, 64},
       {10}});
}

BOOST_AUTO_TEST_CASE(multi_layer_perceptron) {
  check_model(
      {"mlp { in_features: 48 hidden_features: [20, 12] out_features: 10 dropout: 0.3 "
       "activation: ACTIVATION_TANH }",
       {3, 4, 4},
       {10}});
}

BOOST_AUTO_TEST_CASE(vision_transformer) {
  check_model(
      {"vit { image_size: 16 patch_size: 8 layers: 3 heads: 2 width: 8 num_classes: 10 "
       "dropout: 0.1 attention_dropout: 0.2 drop_path: 0.5 }",
       {3, 16, 16},
       {10}});
}

BOOST_AUTO_TEST_CASE(gpt2) {
  check_model(
      {"gpt2 { layers: 2 heads: 2 width: 8 vocab_size: 20 context: 12 }", {9}, {9, 20}, 20});
}

BOOST_AUTO_TEST_CASE(gpt2_with_a_head_of_its_own) {
  check_model({"gpt2 { layers: 2 heads: 2 width: 8 vocab_size: 20 context: 12 untied_head: true }",
               {9},
               {9, 20},
               20});
}

BOOST_AUTO_TEST_CASE(skip_connections_that_cross_stages) {
  check_model({skip_connections, {12}, {10}});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp::test
