#include "fake/fake_executor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "core/precision.hpp"
#include "core/state_split.hpp"
#include "fake/fake_arithmetic.hpp"

namespace troupe::mp {
namespace {

/// A gradient, which here is a digest, as it travels.
Value gradient_value(const std::optional<std::uint64_t>& digest) {
  if (!digest) return absent_value();
  return Value{HostTensor{v1::DTYPE_INT64, {1}, Blob::copy_of(&*digest, sizeof *digest)}, false,
               false};
}

}  // namespace

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
  dtype_ = activation_type(config.precision());
  for (const auto& layer : config.layers())
    layers_.emplace_back(layer, config.seed(), dtype_, master_type(config.precision()), *memory_);
  for (const auto& inbound : config.inbound()) wires_[key_of(inbound.value())] = inbound.dtype();
  for (int i = 0; i < config.layer_settings_size(); ++i)
    for (std::uint32_t slot = 0; slot < config.layers(i).outputs(); ++slot)
      wires_[{config.layers(i).name(), slot, {}}] = config.layer_settings(i).wire();
  for (const auto& layer : config.layers())
    for (const auto& parameter : layer.parameters()) share_values(parameter.name());
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
  for (int i = 0; i < config_.inbound_size(); ++i) {
    const bool field = !config_.inbound(i).has_producer();
    values[key_of(config_.inbound(i).value())] =
        keep(field ? task.inputs[i] : converted_to(dtype_, task.inputs[i]));
  }
  ForwardOutcome outcome;
  for (auto& layer : layers_) {
    TROUPE_ASSIGN(const auto loss, run_layer(layer, task.micro_batch, values, false));
    outcome.has_loss |= loss.has_value();
    if (loss) outcome.loss = *loss;
  }
  for (const auto& outbound : config_.outbound())
    outcome.outputs.push_back(
        converted_to(outbound.dtype(), load(values.at(key_of(outbound.value())))));
  if (task.micro_batch.kind == v1::Key::KIND_TRAIN) {
    drop_recomputed(values);
    for (const auto& [key, value] : values)
      if (value.tensor) outcome.live_bytes += value.tensor->bytes();
    live_[{task.micro_batch.step, task.micro_batch.index}] = std::move(values);
  }
  return outcome;
}

Result<std::optional<LossValue>> FakeExecutor::run_layer(FakeLayer& layer,
                                                         const MicroBatch& micro_batch,
                                                         KeptValues& values, bool again) {
  TROUPE_ASSIGN(const auto result, layer.forward(micro_batch, read(values, layer.config()), again));
  for (std::uint32_t slot = 0; slot < result.outputs.size(); ++slot) {
    const ValueKey key{layer.config().name(), slot, {}};
    values[key] = keep(rounded_to(wire_of(key), result.outputs[slot]));
  }
  return result.loss;
}

v1::DType FakeExecutor::wire_of(const ValueKey& key) const {
  const auto found = wires_.find(key);
  return found == wires_.end() ? v1::DTYPE_UNSPECIFIED : found->second;
}

bool FakeExecutor::recomputed(std::size_t layer) const {
  const auto index = static_cast<int>(layer);
  return index < config_.layer_settings_size() && config_.layer_settings(index).recompute();
}

void FakeExecutor::drop_recomputed(KeptValues& values) const {
  // A run of recomputed layers needs what it reads of others; its own values are made again.
  std::map<ValueKey, std::size_t> run_of;  // of values made in one
  std::set<ValueKey> needed;
  std::size_t run = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& config = layers_[i].config();
    if (!recomputed(i) || i == 0 || !recomputed(i - 1)) ++run;
    for (const auto& read : config.reads()) {
      const auto maker = run_of.find(key_of(read));
      if (maker == run_of.end() || maker->second != run) needed.insert(key_of(read));
    }
    for (std::uint32_t slot = 0; slot < std::max<std::uint32_t>(config.outputs(), 1); ++slot)
      if (recomputed(i)) run_of[{config.name(), slot, {}}] = run;
  }
  for (const auto& [key, maker] : run_of)
    if (needed.count(key) == 0) values.erase(key);
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
    gradient_of(key_of(config_.outbound(i).value())) =
        converted_to(dtype_, task.output_gradients[i]);

  for (std::size_t l = layers_.size(); l-- > 0;) {
    auto* layer = &layers_[l];
    if (recomputed(l) && (l + 1 == layers_.size() || !recomputed(l + 1))) {
      std::size_t first = l;
      while (first > 0 && recomputed(first - 1)) --first;
      for (std::size_t again = first; again <= l; ++again)
        TROUPE_TRY(run_layer(layers_[again], task.micro_batch, live->second, true));
    }
    const auto& config = layer->config();
    std::vector<Value> output_gradients;
    for (std::uint32_t slot = 0; slot < std::max<std::uint32_t>(config.outputs(), 1); ++slot)
      output_gradients.push_back(gradient_of({config.name(), slot, {}}));
    TROUPE_ASSIGN(const std::vector<Value> input_gradients,
                  layer->backward(task.micro_batch, read(live->second, config), output_gradients,
                                  task.loss_scale));
    // From the last reader to the first, as everywhere.
    for (int i = config.reads_size() - 1; i >= 0; --i) {
      auto& sum = gradient_of(key_of(config.reads(i)));
      TROUPE_ASSIGN(sum, add_values(sum, input_gradients[i]));
      sum = rounded_to(wire_of(key_of(config.reads(i))), sum);
    }
  }
  BackwardOutcome outcome;
  for (const auto& inbound : config_.inbound())
    outcome.input_gradients.push_back(
        converted_to(inbound.dtype(), gradient_of(key_of(inbound.value()))));
  live_.erase(live);
  return outcome;
}

void FakeExecutor::summarise_gradients(Completion<GradientSummary> done) {
  complete(done, [&]() -> Result<GradientSummary> {
    TROUPE_TRY(sum_tied_gradients());
    GradientSummary summary;
    for (const auto& layer : layers_)
      for (const auto norm : layer.squared_norms()) {
        summary.squared_norms.push_back(norm);
        summary.finite &= std::isfinite(norm);
      }
    for (const auto& copy : config_.tied_copies())
      for (const auto& use : copy.uses())
        summary.tied_gradients.push_back(gradient_value(tensor(use).gradient));
    return summary;
  });
}

void FakeExecutor::take_tied_gradients(std::vector<Value> gradients, Completion<void> done) {
  complete(done, [&]() -> Result<void> {
    tied_gradients_ = std::move(gradients);
    return {};
  });
}

Result<void> FakeExecutor::sum_tied_gradients() {
  std::size_t next = 0;
  for (const auto& weight : config_.tied_weights()) {
    auto& uses = tensor(weight.parameter()).tied;
    uses.clear();
    for (const auto& use : weight.uses()) {
      if (use.has_stage() && next == tied_gradients_.size())
        return internal_error("executor", "the gradient of " + use.parameter() + " is missing");
      const auto gradient = use.has_stage() ? tied_gradients_[next++]
                                            : gradient_value(tensor(use.parameter()).gradient);
      if (!gradient.absent) uses.push_back(gradient.tensor.as<std::uint64_t>()[0]);
    }
  }
  return {};
}

FakeLayer::Tensor& FakeExecutor::tensor(const std::string& name) {
  const auto found = std::find_if(layers_.begin(), layers_.end(), [&](const FakeLayer& layer) {
    return layer.find(name) != nullptr;
  });
  return *found->find(name);
}

void FakeExecutor::share_values(const std::string& name) {
  const auto& source = tensor(name);
  const auto& owner = source.config.tied_to().empty() ? name : source.config.tied_to();
  for (auto& layer : layers_)
    for (const auto& other : layer.tensors())
      if (other.config.tied_to() == owner) layer.find(other.config.name())->stored = source.stored;
}

void FakeExecutor::export_tied_values(Completion<std::vector<Value>> done) {
  complete(done, [&]() -> Result<std::vector<Value>> {
    std::vector<Value> values;
    for (const auto& weight : config_.tied_weights()) {
      const auto& uses = weight.uses();
      const bool shared =
          std::any_of(uses.begin(), uses.end(), [](const auto& use) { return use.has_stage(); });
      values.push_back(shared ? Value{tensor(weight.parameter()).stored->load(), false, false}
                              : absent_value());
    }
    return values;
  });
}

void FakeExecutor::update(StepUpdate update, Completion<void> done) {
  complete(done, [&]() -> Result<void> {
    TROUPE_TRY(sum_tied_gradients());
    for (auto& layer : layers_) layer.update(update, config_.frozen());
    for (const auto& weight : config_.tied_weights()) share_values(weight.parameter());
    tied_gradients_.clear();
    return {};
  });
}

void FakeExecutor::export_state(Completion<std::vector<NamedTensor>> done) {
  complete(done, [&]() -> Result<std::vector<NamedTensor>> {
    std::vector<NamedTensor> tensors;
    for (const bool buffers : {false, true})
      for (const auto& layer : layers_)
        for (const auto& tensor : layer.tensors())
          if (tensor.buffer == buffers && tensor.config.tied_to().empty())
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
    for (const auto& tensor : tensors) {
      for (auto& layer : layers_) TROUPE_TRY(layer.replace(tensor.name, tensor.tensor));
      share_values(tensor.name);
    }
    return {};
  });
}

void FakeExecutor::discard_all() {
  live_.clear();
  tied_gradients_.clear();
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
