#include "libtorch/stage_model.hpp"

#include <map>
#include <utility>

#include "core/random.hpp"
#include "core/state_split.hpp"
#include "core/value_ref.hpp"
#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Numbers the values of a stage.
class ValueTable {
 public:
  std::size_t add(const v1::ValueRef& value) {
    return numbers_.emplace(key_of(value), numbers_.size()).first->second;
  }

  Result<std::size_t> find(const v1::ValueRef& value, const std::string& reader) const {
    const auto found = numbers_.find(key_of(value));
    if (found != numbers_.end()) return found->second;
    return bad_input(reader, "reads " + mp::describe(value) +
                                 ", which is neither inbound nor an earlier layer's");
  }

  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<ValueKey, std::size_t> numbers_;
};

at::Tensor initial_state(const v1::Parameter& parameter, const v1::StageConfig& config,
                         at::Device device) {
  const v1::DType dtype = state_type(parameter, config.precision());
  const HostTensor host = initial_tensor(parameter, config.seed(), dtype);
  // A copy even on the CPU: the bytes of a HostTensor are not ours to change.
  return to_tensor(host).to(device, to_scalar_type(dtype), /*non_blocking=*/false, /*copy=*/true);
}

/// Creates the state of one layer and the layer itself.
Result<void> add_layer(const v1::Layer& config, const v1::StageConfig& stage,
                       const LayerRegistry& registry, at::Device device, StageModel& model) {
  WiredLayer wired;
  wired.name = config.name();
  std::map<std::string, at::Tensor> tensors;
  for (const auto& parameter : config.parameters()) {
    at::Tensor tensor = initial_state(parameter, stage, device);
    tensor.set_requires_grad(!stage.frozen() && stage.train() && tensor.is_floating_point());
    tensors[parameter.name()] = tensor;
    wired.parameters.push_back(model.parameters.size());
    model.parameters.push_back({parameter.name(), tensor, {}});
  }
  for (const auto& buffer : config.buffers()) {
    const at::Tensor tensor = initial_state(buffer, stage, device);
    tensors[buffer.name()] = tensor;
    model.buffers.push_back({buffer.name(), tensor, {}});
  }
  TROUPE_ASSIGN(wired.layer, registry.create(LayerSetup(config, tensors)));
  model.layers.push_back(std::move(wired));
  return {};
}

Result<void> wire(const v1::StageConfig& config, StageModel& model) {
  ValueTable values;
  for (const auto& inbound : config.inbound()) model.inbound.push_back(values.add(inbound.value()));
  for (int i = 0; i < config.layers_size(); ++i) {
    const v1::Layer& layer = config.layers(i);
    WiredLayer& wired = model.layers[static_cast<std::size_t>(i)];
    for (const auto& read : layer.reads()) {
      TROUPE_ASSIGN(const std::size_t value, values.find(read, "layer '" + layer.name() + "'"));
      wired.reads.push_back(value);
    }
    for (std::uint32_t slot = 0; slot < std::max<std::uint32_t>(layer.outputs(), 1); ++slot)
      wired.writes.push_back(values.add(output_of(layer.name(), slot)));
  }
  for (const auto& outbound : config.outbound()) {
    TROUPE_ASSIGN(const std::size_t value,
                  values.find(outbound.value(), "stage " + std::to_string(config.stage())));
    model.outbound.push_back(value);
  }
  model.last_reader.assign(values.size(), StageModel::none);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (const std::size_t value : model.layers[i].reads) model.last_reader[value] = i;
  for (const std::size_t value : model.outbound) model.last_reader[value] = StageModel::none;
  return {};
}

}  // namespace

Result<StageModel> StageModel::build(const v1::StageConfig& config, const LayerRegistry& registry,
                                     at::Device device, Progress& progress) {
  StageModel model;
  model.seed = config.seed();
  model.frozen = config.frozen();
  if (config.batch_norm() == v1::BATCH_NORM_DEFERRED)
    model.deferred = std::make_unique<DeferredStatistics>();
  model.float_type = config.precision() == v1::PRECISION_FLOAT64 ? at::kDouble : at::kFloat;
  for (const auto& layer : config.layers()) {
    progress.layer = &layer.name();
    TROUPE_TRY(add_layer(layer, config, registry, device, model));
  }
  progress.layer = nullptr;
  TROUPE_TRY(wire(config, model));
  return model;
}

void StateEntry::add_gradient(at::Tensor addend) {
  if (gradient.defined()) {
    gradient.add_(addend);
    return;
  }
  const bool ours = addend.use_count() == 1 && addend.storage().use_count() == 1;
  gradient = ours ? row_major(addend) : row_major(addend).clone();
}

void StageModel::collect_gradients() {
  for (auto& wired : layers)
    for (auto& own : wired.layer->take_gradients())
      for (const std::size_t i : wired.parameters)
        if (parameters[i].tensor.is_same(own.parameter))
          parameters[i].add_gradient(std::exchange(own.gradient, {}));
}

void StageModel::clear_gradients() {
  for (auto& wired : layers) wired.layer->discard_gradients();
  for (auto& parameter : parameters) parameter.gradient.reset();
}

}  // namespace troupe::mp::libtorch
