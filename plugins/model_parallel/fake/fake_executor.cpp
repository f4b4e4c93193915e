#include "fake/fake_executor.hpp"

#include <algorithm>
#include <utility>

#include "core/convert.hpp"
#include "core/state_split.hpp"
#include "fake/fake_arithmetic.hpp"

namespace troupe::mp {

FakeExecutor::FakeExecutor(std::unique_ptr<FakeMemory> memory) : memory_(std::move(memory)) {}

FakeExecutor::KeptValue FakeExecutor::keep(const Value& value) {
  if (value.absent) return {};
  return {memory_->store(value.tensor), value.requires_grad};
}

Value FakeExecutor::load(const KeptValue& kept) {
  Value value;
  value.absent = kept.tensor == nullptr;
  value.requires_grad = kept.requires_grad;
  if (kept.tensor) value.tensor = kept.tensor->load();
  return value;
}

std::vector<Value> FakeExecutor::read(const KeptValues& values, const v1::Layer& layer) {
  std::vector<Value> inputs;
  for (const auto& ref : layer.reads()) inputs.push_back(load(values.at(key_of(ref))));
  return inputs;
}

template <class T, class Operation>
void FakeExecutor::complete(const Completion<T>& done, const Operation& operation) {
  if (failed_) {
    done(internal_error("executor", "used after an error"));
    return;
  }
  Result<T> result = operation();
  failed_ = !result.ok();
  done(std::move(result));
}

Result<void> FakeExecutor::initialise(const v1::StageConfig& config) {
  config_ = config;
  const auto dtype =
      config.precision() == v1::PRECISION_FLOAT64 ? v1::DTYPE_FLOAT64 : v1::DTYPE_FLOAT32;
  for (const auto& layer : config.layers())
    layers_.emplace_back(layer, config.seed(), dtype, *memory_);
  return {};
}

runtime::v1::NumericFingerprint FakeExecutor::fingerprint() const {
  runtime::v1::NumericFingerprint fingerprint;
  fingerprint.set_libraries("fake");
  for (const auto& layer : layers_)
    if (const auto version = layer.library_version())
      fingerprint.set_libraries("fake " + std::to_string(*version));
  fingerprint.set_device(config_.device());
  fingerprint.set_threads(config_.threads());
  return fingerprint;
}

void FakeExecutor::forward(ForwardTask task, Completion<ForwardOutcome> done) {
  complete(done, [&] { return run_forward(task); });
}

Result<ForwardOutcome> FakeExecutor::run_forward(const ForwardTask& task) {
  if (task.inputs.size() != static_cast<std::size_t>(config_.inbound_size()))
    return internal_error("executor", "a forward with the wrong number of values");
  KeptValues values;
  for (int i = 0; i < config_.inbound_size(); ++i)
    values[key_of(config_.inbound(i).value())] = keep(task.inputs[i]);

  ForwardOutcome outcome;
  for (auto& layer : layers_) {
    TROUPE_ASSIGN(const auto result, layer.forward(task.micro_batch, read(values, layer.config())));
    if (result.loss) {
      outcome.has_loss = true;
      outcome.loss = *result.loss;
    }
    for (std::uint32_t slot = 0; slot < result.outputs.size(); ++slot)
      values[{layer.config().name(), slot, {}}] = keep(result.outputs[slot]);
  }
  for (const auto& outbound : config_.outbound())
    outcome.outputs.push_back(load(values.at(key_of(outbound.value()))));
  if (task.micro_batch.kind == v1::Key::KIND_TRAIN) {
    for (const auto& [key, value] : values)
      if (value.tensor) outcome.live_bytes += value.tensor->bytes();
    live_[{task.micro_batch.step, task.micro_batch.index}] = std::move(values);
  }
  return outcome;
}

void FakeExecutor::backward(BackwardTask task, Completion<BackwardOutcome> done) {
  complete(done, [&] { return run_backward(task); });
}

Result<BackwardOutcome> FakeExecutor::run_backward(const BackwardTask& task) {
  const auto live = live_.find({task.micro_batch.step, task.micro_batch.index});
  if (live == live_.end())
    return internal_error("executor", "a backward of a micro-batch that had no forward");
  if (task.output_gradients.size() != static_cast<std::size_t>(config_.outbound_size()))
    return internal_error("executor", "a backward with the wrong number of gradients");
  std::map<ValueKey, Value> gradients;
  const auto gradient_of = [&](const ValueKey& key) -> Value& {
    const auto [place, added] = gradients.try_emplace(key);
    if (added) place->second.absent = true;
    return place->second;
  };
  for (int i = 0; i < config_.outbound_size(); ++i)
    gradient_of(key_of(config_.outbound(i).value())) = task.output_gradients[i];

  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    const auto& config = layer->config();
    std::vector<Value> output_gradients;
    for (std::uint32_t slot = 0; slot < std::max<std::uint32_t>(config.outputs(), 1); ++slot)
      output_gradients.push_back(gradient_of({config.name(), slot, {}}));
    TROUPE_ASSIGN(const std::vector<Value> input_gradients,
                  layer->backward(task.micro_batch, read(live->second, config), output_gradients));
    // From the last reader to the first, as everywhere.
    for (int i = config.reads_size() - 1; i >= 0; --i) {
      auto& sum = gradient_of(key_of(config.reads(i)));
      TROUPE_ASSIGN(sum, add_values(sum, input_gradients[i]));
    }
  }
  BackwardOutcome outcome;
  for (const auto& inbound : config_.inbound())
    outcome.input_gradients.push_back(gradient_of(key_of(inbound.value())));
  live_.erase(live);
  return outcome;
}

void FakeExecutor::summarise_gradients(Completion<GradientSummary> done) {
  complete(done, [&]() -> Result<GradientSummary> {
    GradientSummary summary;
    for (const auto& layer : layers_)
      for (const auto norm : layer.squared_norms()) summary.squared_norms.push_back(norm);
    return summary;
  });
}

void FakeExecutor::update(StepUpdate update, Completion<void> done) {
  complete(done, [&]() -> Result<void> {
    for (auto& layer : layers_) layer.update(update, config_.frozen());
    return {};
  });
}

void FakeExecutor::export_state(Completion<std::vector<NamedTensor>> done) {
  complete(done, [&]() -> Result<std::vector<NamedTensor>> {
    std::vector<NamedTensor> tensors;
    for (const bool buffers : {false, true})
      for (const auto& layer : layers_)
        for (const auto& tensor : layer.tensors())
          if (tensor.buffer == buffers)
            tensors.push_back({tensor.config.name(), tensor.stored->load(), tensor.buffer});
    return tensors;
  });
}

Result<void> FakeExecutor::check_import(const std::vector<NamedTensor>& tensors) const {
  for (const auto& tensor : tensors) {
    const FakeLayer::Tensor* mine = nullptr;
    for (const auto& layer : layers_)
      if (mine == nullptr) mine = layer.find(tensor.name);
    if (mine == nullptr)
      return bad_input("tensor " + tensor.name, "this stage has no such parameter or buffer");
    const auto present = mine->stored->load();
    if (present.shape != tensor.tensor.shape)
      return bad_input("tensor " + tensor.name, "shape " + to_string(tensor.tensor.shape) +
                                                    " instead of " + to_string(present.shape));
    if (!can_import(tensor.tensor.dtype, present.dtype))
      return wrong_type("stage " + std::to_string(config_.stage()), tensor.name,
                        tensor.tensor.dtype, present.dtype);
  }
  return {};
}

void FakeExecutor::import_state(std::vector<NamedTensor> tensors, Completion<void> done) {
  complete(done, [&]() -> Result<void> {
    TROUPE_TRY(check_import(tensors));
    for (const auto& tensor : tensors)
      for (auto& layer : layers_) TROUPE_TRY(layer.replace(tensor.name, tensor.tensor));
    return {};
  });
}

void FakeExecutor::discard_all() {
  live_.clear();
  for (auto& layer : layers_) layer.clear_gradients();
  failed_ = false;
}

std::unique_ptr<StageExecutor> make_fake_executor() {
  return std::make_unique<FakeExecutor>(make_host_memory());
}

std::unique_ptr<StageExecutor> make_fake_device_executor(std::shared_ptr<FakeDeviceUse> use) {
  return std::make_unique<FakeExecutor>(make_device_memory(std::move(use)));
}

}  // namespace troupe::mp
