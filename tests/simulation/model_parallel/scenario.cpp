#include "scenario.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "actors/stage_actor.hpp"
#include "core/optimizer_config.hpp"
#include "core/random.hpp"

namespace troupe::mp::test {
namespace {

/// Rows of four numbers and a class, drawn at the sample's place in the epoch.
class NumberedSamples : public DataSource {
 public:
  std::uint64_t samples() const override { return samples_in_epoch; }
  std::vector<std::string> fields() const override { return {"inputs", "targets"}; }

  Result<Batch> batch(std::uint64_t epoch, std::uint64_t index, std::uint32_t batch_size) override {
    Batch batch;
    batch.first_sample = index * batch_size;
    batch.samples = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(batch_size, samples_in_epoch - batch.first_sample));
    HostTensor inputs{
        v1::DTYPE_FLOAT32, {batch.samples, 4}, Blob::uninitialized(batch.samples * 16)};
    HostTensor targets{v1::DTYPE_INT64, {batch.samples}, Blob::uninitialized(batch.samples * 8)};
    auto* numbers = reinterpret_cast<float*>(inputs.data.mutable_data());
    auto* classes = reinterpret_cast<std::int64_t*>(targets.data.mutable_data());
    const auto key = stream_key(epoch, "samples");
    for (std::uint32_t row = 0; row < batch.samples; ++row) {
      const auto sample = batch.first_sample + row;
      for (std::uint32_t i = 0; i < 4; ++i)
        numbers[4 * row + i] = static_cast<float>(normal_at(key, 4 * sample + i));
      classes[row] = static_cast<std::int64_t>(sample % 10);
    }
    batch.fields["inputs"] = inputs;
    batch.fields["targets"] = targets;
    return batch;
  }
};

FeedConfig feed(std::uint32_t batch_size, std::uint32_t micro_batch_size, std::uint64_t batches) {
  FeedConfig feed;
  feed.source = std::make_shared<NumberedSamples>();
  feed.plan.samples = samples_in_epoch;
  feed.plan.batch_size = batch_size;
  feed.plan.batches = batches;
  feed.plan.prefetch_bytes = 400;
  feed.micro_batch_size = micro_batch_size;
  return feed;
}

std::vector<std::string> distinct(const std::vector<std::string>& names) {
  const std::set<std::string> set(names.begin(), names.end());
  return {set.begin(), set.end()};
}

PlanRequest plan_request(const Scenario& scenario) {
  PlanRequest request;
  request.job = "test";
  request.generation = 1;
  request.seed = scenario.weights_seed;
  request.layers = layers_of(scenario);
  for (std::size_t i = 0; i < scenario.stage_nodes.size(); ++i) {
    v1::Stage stage;
    stage.set_node(scenario.stage_nodes[i]);
    stage.set_device("fake");
    if (i != 0) stage.set_first_layer("l" + std::to_string(scenario.first_layers[i]));
    const auto& frozen = scenario.frozen_stages;
    stage.set_frozen(std::find(frozen.begin(), frozen.end(), i) != frozen.end());
    request.stages.push_back(stage);
  }
  request.nodes = distinct(scenario.stage_nodes);
  auto* loss = request.loss.emplace().mutable_cross_entropy();
  if (scenario.ignore_index) loss->set_ignore_index(*scenario.ignore_index);
  request.schedule = scenario.schedule;
  request.precision = scenario.precision;
  request.rules = scenario.rules;
  request.loss_scaling = scenario.loss_scaling;
  request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  return request;
}

}  // namespace

std::vector<v1::Layer> layers_of(const Scenario& scenario) {
  std::vector<v1::Layer> layers;
  for (std::uint32_t i = 0; i < layer_count; ++i) {
    v1::Layer layer;
    layer.set_name("l" + std::to_string(i));
    layer.set_kind("linear");
    layer.set_outputs(1);
    const auto add = [&](v1::Parameter* tensor, const std::string& name) {
      tensor->set_name(layer.name() + "." + name);
      tensor->add_shape(4);
      tensor->mutable_init()->set_normal_std(1);
    };
    add(layer.add_parameters(), "weight");
    if (const auto owner = scenario.tied.find(i); owner != scenario.tied.end()) {
      auto* weight = layer.mutable_parameters(0);
      weight->set_tied_to("l" + std::to_string(owner->second) + ".weight");
      weight->clear_init();
    }
    if (i % 2 == 0) add(layer.add_buffers(), "running_mean");
    if (i == scenario.special_layer)
      for (const auto& [name, value] : scenario.special_attributes)
        (*layer.mutable_attributes())[name] = value;
    layers.push_back(layer);
  }
  return layers;
}

Running::Running(const Scenario& scenario) {
  plan_ = value_of(make_plan(plan_request(scenario)));
  session_ = std::make_unique<troupe::testing::LocalSession>(
      troupe::testing::job_with_nodes(distinct(scenario.stage_nodes)),
      troupe::testing::LocalSession::Factories{{stage_factory, spawn_stage}}, scenario.simulation);
  DriverOptions options;
  options.schedule = scenario.schedule;
  v1::Optimizer optimizer;
  optimizer.mutable_sgd()->set_lr(0.1);
  options.learning_rates = value_of(
      learning_rates(optimizer, RunLength(), [](const std::string& path) { return path; }));
  options.clip_grad_norm = scenario.clip_grad_norm;
  options.batches_in_step = scenario.batches_in_step;
  options.feeds[v1::Key::KIND_TRAIN] = feed(scenario.batch_size, scenario.micro_batch_size,
                                            scenario.steps * scenario.batches_in_step);
  const auto size = scenario.evaluation_batch_size;
  options.feeds[v1::Key::KIND_EVAL] = feed(size, size, (samples_in_epoch + size - 1) / size);
  driver_ = value_of(Driver::start(*session_, plan_, std::move(options)));
}

TrainingOutcome train(Running& running, std::uint64_t steps) {
  TrainingOutcome outcome;
  outcome.initial = value_of(running.pipeline().export_model());
  for (std::uint64_t i = 0; i < steps; ++i)
    outcome.steps.push_back(value_of(running.pipeline().train_step()));
  outcome.state = value_of(running.pipeline().export_model());
  return outcome;
}

TrainingOutcome train(const Scenario& scenario) {
  Running running(scenario);
  return train(running, scenario.steps);
}

Scenario cut_at(const std::vector<std::uint32_t>& first_layers, std::size_t nodes) {
  Scenario scenario;
  scenario.first_layers = first_layers;
  scenario.stage_nodes.clear();
  for (std::size_t i = 0; i < first_layers.size(); ++i)
    scenario.stage_nodes.push_back(std::string(1, static_cast<char>('a' + i % nodes)));
  return scenario;
}

bool same_state(const TensorMap& a, const TensorMap& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           const auto& left = x.second;
           const auto& right = y.second;
           return x.first == y.first && left.dtype == right.dtype && left.shape == right.shape &&
                  left.data.size() == right.data.size() &&
                  std::memcmp(left.data.data(), right.data.data(), left.data.size()) == 0;
         });
}

}  // namespace troupe::mp::test
