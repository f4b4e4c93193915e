#include "conformance/executor_chain.hpp"

#include <cstring>

#include "core/model_catalog.hpp"
#include "core/random.hpp"

namespace troupe::mp::conformance {
namespace {

HostTensor random_tensor(const std::string& name, std::uint64_t seed, Shape shape) {
  HostTensor tensor;
  tensor.dtype = v1::DTYPE_FLOAT64;
  tensor.shape = std::move(shape);
  const auto count = value_of(element_count(tensor.shape));
  tensor.data = Blob::uninitialized(count * sizeof(double));
  auto* out = reinterpret_cast<double*>(tensor.data.mutable_data());
  for (std::uint64_t i = 0; i < count; ++i) out[i] = normal_at(stream_key(seed, name), i);
  return tensor;
}

v1::Model tied_model() {
  v1::Model model;
  const auto add = [&](const std::string& name, const std::string& kind) {
    auto* layer = model.mutable_layers()->add_layers();
    layer->set_name(name);
    layer->set_kind(kind);
    return layer;
  };
  const auto add_linear = [&](const std::string& name, int outputs, const std::string& tied_to) {
    auto* layer = add(name, "linear");
    auto* weight = layer->add_parameters();
    weight->set_name(name + ".weight");
    weight->add_shape(outputs);
    weight->add_shape(6);
    weight->set_tied_to(tied_to);
    if (tied_to.empty()) weight->mutable_init()->set_normal_std(0.4);
    auto* bias = layer->add_parameters();
    bias->set_name(name + ".bias");
    bias->add_shape(outputs);
    bias->mutable_init()->set_normal_std(0.4);
  };
  add_linear("a", 6, "");
  add("b", "tanh");
  add_linear("c", 6, "a.weight");
  add("d", "relu");
  add_linear("e", 6, "a.weight");
  add_linear("f", 4, "");
  return model;
}

v1::Model test_model() {
  v1::Model model;
  const auto add = [&](const std::string& name, const std::string& kind, int in, int out) {
    auto* layer = model.mutable_layers()->add_layers();
    layer->set_name(name);
    layer->set_kind(kind);
    if (kind != "linear") return;
    (*layer->mutable_attributes())["in_features"] = in;
    (*layer->mutable_attributes())["out_features"] = out;
  };
  add("a", "linear", 6, 5);
  add("b", "tanh", 0, 0);
  add("c", "linear", 5, 4);
  add("d", "relu", 0, 0);
  add("e", "identity", 0, 0);
  return model;
}

}  // namespace

Plan make_test_plan(const ChainOptions& options) {
  PlanRequest request;
  request.job = "conformance";
  request.seed = options.seed;
  // The catalog's checks of written layers are not these tests'.
  if (options.tied) {
    const auto model = tied_model();
    request.layers.assign(model.layers().layers().begin(), model.layers().layers().end());
  } else {
    request.layers = value_of(list_layers(test_model()));
  }
  request.rules = options.rules;
  request.nodes = {"n"};
  for (const auto& first_layer : options.first_layers) {
    v1::Stage stage;
    stage.set_node("n");
    stage.set_first_layer(first_layer);
    stage.set_frozen(options.frozen);
    stage.set_threads(1);
    request.stages.push_back(stage);
  }
  if (options.with_loss) request.loss.emplace().mutable_mse();
  request.precision = options.precision;
  auto& sgd = *request.optimizer.emplace().mutable_sgd();
  sgd.set_lr(0.5);
  sgd.set_momentum(0.9);
  return value_of(make_plan(request));
}

HostTensor test_inputs(std::uint64_t seed, std::int64_t samples) {
  return random_tensor("inputs", seed, {samples, 6});
}

HostTensor test_targets(std::uint64_t seed, std::int64_t samples) {
  return random_tensor("targets", seed, {samples, 4});
}

MicroBatch training(std::uint64_t step, std::uint32_t index, std::uint32_t samples, double weight) {
  MicroBatch micro_batch;
  micro_batch.step = step;
  micro_batch.index = index;
  micro_batch.samples = samples;
  micro_batch.weight = weight;
  return micro_batch;
}

Chain::Chain(const ExecutorFactory& create, const ChainOptions& options)
    : plan_(make_test_plan(options)) {
  for (const auto& stage : plan_.stages) {
    executors_.push_back(create());
    check_ok(executors_.back()->initialise(stage.config));
  }
}

Chain::Forward Chain::forward(const MicroBatch& micro_batch, const HostTensor& inputs,
                              const HostTensor& targets) {
  std::map<ValueKey, Value> values;
  values[{"", 0, "inputs"}] = Value{inputs, false, false};
  values[{"", 0, "targets"}] = Value{targets, false, targets.shape.empty()};
  Forward result;
  for (std::size_t s = 0; s < executors_.size(); ++s) {
    ForwardTask task{micro_batch, {}};
    for (const auto& inbound : config(s).inbound())
      task.inputs.push_back(values.at(key_of(inbound.value())));
    auto outcome = value_of(await<ForwardOutcome>(
        [&](auto done) { executors_[s]->forward(std::move(task), std::move(done)); }));
    for (int i = 0; i < config(s).outbound_size(); ++i)
      values[key_of(config(s).outbound(i).value())] = outcome.outputs.at(i);
    result.has_loss = result.has_loss || outcome.has_loss;
    if (outcome.has_loss) result.loss = outcome.loss;
    result.live_bytes += outcome.live_bytes;
    result.outputs = std::move(outcome.outputs);
  }
  if (micro_batch.kind == v1::Key::KIND_TRAIN) values_[micro_batch.index] = std::move(values);
  return result;
}

void Chain::backward(const MicroBatch& micro_batch, const Value& output_gradient) {
  const auto& values = values_.at(micro_batch.index);
  std::map<ValueKey, Value> gradients;  // from the next stage that reads the value
  for (std::size_t s = executors_.size(); s-- > 0;) {
    BackwardTask task{micro_batch, {}};
    for (const auto& outbound : config(s).outbound()) {
      const bool to_driver = s + 1 == executors_.size();
      task.output_gradients.push_back(to_driver ? output_gradient
                                                : gradients.at(key_of(outbound.value())));
    }
    const auto outcome = value_of(await<BackwardOutcome>(
        [&](auto done) { executors_[s]->backward(std::move(task), std::move(done)); }));
    for (int i = 0; i < config(s).inbound_size(); ++i) {
      const auto key = key_of(config(s).inbound(i).value());
      if (!values.at(key).requires_grad && !outcome.input_gradients.at(i).absent)
        throw std::runtime_error("a gradient for a value that needs none");
      gradients[key] = outcome.input_gradients.at(i);
    }
  }
  values_.erase(micro_batch.index);
}

std::vector<test::TiedStage> Chain::stages() const {
  std::vector<test::TiedStage> stages;
  for (std::size_t s = 0; s < executors_.size(); ++s)
    stages.push_back({&config(s), executors_[s].get()});
  return stages;
}

std::vector<double> Chain::squared_norms() {
  std::vector<double> norms;
  for (const auto& summary : test::summarise_all(stages()))
    norms.insert(norms.end(), summary.squared_norms.begin(), summary.squared_norms.end());
  return norms;
}

void Chain::update(const StepUpdate& update) {
  if (test::exchanges_tied(stages())) squared_norms();
  for (auto& executor : executors_)
    check_ok(await<void>([&](auto done) { executor->update(update, std::move(done)); }));
  if (!update.skip) test::exchange_tied_values(stages());
}

TensorMap Chain::state() {
  TensorMap state;
  for (auto& executor : executors_)
    for (auto& tensor : value_of(await<std::vector<NamedTensor>>(
             [&](auto done) { executor->export_state(std::move(done)); })))
      state[tensor.name] = std::move(tensor.tensor);
  return state;
}

void Chain::train_step(std::uint64_t step) {
  const auto inputs = test_inputs(step, 5);
  const auto targets = test_targets(step, 5);
  const auto first = training(step, 0, 3, 0.6);
  const auto second = training(step, 1, 2, 0.4);
  forward(first, inputs.rows(0, 3), targets.rows(0, 3));
  forward(second, inputs.rows(3, 5), targets.rows(3, 5));
  backward(first);
  backward(second);
  update({{0.5}, 0.75});
}

bool same_bytes(const TensorMap& a, const TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.dtype != tensor.dtype ||
        other->second.shape != tensor.shape || other->second.data.size() != tensor.data.size())
      return false;
    if (std::memcmp(tensor.data.data(), other->second.data.data(), tensor.data.size()) != 0)
      return false;
  }
  return true;
}

}  // namespace troupe::mp::conformance
