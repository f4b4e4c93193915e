#include "libtorch/stage_model.hpp"

#include <map>
#include <utility>

#include "core/precision.hpp"
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

/// Whether gradients of a parameter are wanted: not where its owner, in another stage, is frozen.
bool is_trained(const v1::Parameter& parameter, const v1::StageConfig& stage) {
  if (stage.frozen() || !stage.train()) return false;
  if (parameter.tied_to().empty()) return true;
  for (const auto& copy : stage.tied_copies())
    if (copy.owner() == parameter.tied_to()) return true;
  return false;
}

/// Creates the state of one layer and the layer itself. `shared` has the tensors of parameters so
/// far, by the owner's name: those that share values within a stage share the tensor.
Result<void> add_layer(const v1::Layer& config, const v1::StageConfig& stage,
                       const LayerKinds& registry, std::map<std::string, at::Tensor>& shared,
                       StageModel& model) {
  WiredLayer wired;
  wired.name = config.name();
  std::map<std::string, at::Tensor> tensors;
  for (const auto& parameter : config.parameters()) {
    const bool tied = !parameter.tied_to().empty();
    at::Tensor& tensor = shared[tied ? parameter.tied_to() : parameter.name()];
    if (!tensor.defined()) {
      tensor = initial_state(parameter, stage, model.device);
      tensor.set_requires_grad(is_trained(parameter, stage) && tensor.is_floating_point());
    }
    tensors[parameter.name()] = tensor;
    wired.parameters.push_back(model.parameters.size());
    model.parameters.push_back({parameter.name(), tensor, {}, tied, {}});
  }
  for (const auto& buffer : config.buffers()) {
    const at::Tensor tensor = initial_state(buffer, stage, model.device);
    tensors[buffer.name()] = tensor;
    wired.buffers.push_back(model.buffers.size());
    model.buffers.push_back({buffer.name(), tensor, {}, false, {}});
  }
  TROUPE_ASSIGN(wired.layer, registry.create(LayerSetup(config, tensors)));
  model.layers.push_back(std::move(wired));
  return {};
}

std::size_t find_parameter(const StageModel& model, const std::string& name) {
  std::size_t i = 0;
  while (i < model.parameters.size() && model.parameters[i].name != name) ++i;
  return i;
}

void tie(const v1::StageConfig& config, StageModel& model) {
  for (const auto& weight : config.tied_weights()) {
    TiedParameter tied;
    tied.owner = find_parameter(model, weight.parameter());
    for (const auto& use : weight.uses()) {
      tied.uses.push_back(use.has_stage() ? StageModel::none
                                          : find_parameter(model, use.parameter()));
      tied.shared_elsewhere |= use.has_stage();
    }
    model.tied.push_back(std::move(tied));
  }
  for (const auto& copy : config.tied_copies())
    for (const auto& use : copy.uses()) model.tied_copies.push_back(find_parameter(model, use));
}

at::ScalarType wire_type(v1::DType dtype) {
  return dtype == v1::DTYPE_UNSPECIFIED ? at::ScalarType::Undefined : to_scalar_type(dtype);
}

/// What layers have declared: the types of their outputs, and whether they are recomputed.
void apply_settings(const v1::StageConfig& config, StageModel& model) {
  for (int i = 0; i < config.layer_settings_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    WiredLayer& wired = model.layers[index];
    for (const std::size_t value : wired.writes)
      model.wires[value] = wire_type(config.layer_settings(i).wire());
    if (!config.layer_settings(i).recompute()) continue;
    const std::size_t before = i == 0 ? StageModel::none : model.layers[index - 1].segment;
    wired.segment = before == StageModel::none ? index : before;
  }
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
  model.wires.assign(values.size(), at::ScalarType::Undefined);
  model.writer.assign(values.size(), StageModel::none);
  for (std::size_t i = 0; i < model.inbound.size(); ++i)
    model.wires[model.inbound[i]] = wire_type(config.inbound(static_cast<int>(i)).dtype());
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (const std::size_t value : model.layers[i].writes) model.writer[value] = i;
  apply_settings(config, model);
  return {};
}

}  // namespace

Result<StageModel> StageModel::build(const v1::StageConfig& config, const LayerKinds& registry,
                                     at::Device device, Progress& progress) {
  StageModel model;
  model.seed = config.seed();
  model.frozen = config.frozen();
  if (config.batch_norm() == v1::BATCH_NORM_DEFERRED)
    model.deferred = std::make_unique<DeferredStatistics>();
  model.device = device;
  model.float_type = to_scalar_type(activation_type(config.precision()));
  model.weight_type = to_scalar_type(master_type(config.precision()));
  std::map<std::string, at::Tensor> shared;
  for (const auto& layer : config.layers()) {
    progress.layer = &layer.name();
    TROUPE_TRY(add_layer(layer, config, registry, shared, model));
  }
  progress.layer = nullptr;
  tie(config, model);
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

std::size_t StageModel::segment_of(std::size_t value) const {
  if (writer[value] == none) return none;
  const std::size_t segment = layers[writer[value]].segment;
  if (segment == none) return none;
  for (const auto& layer : layers)
    for (const std::size_t read : layer.reads)
      if (read == value && layer.segment != segment) return none;
  return segment;
}

void StageModel::sum_tied_gradients(const std::vector<at::Tensor>& elsewhere) {
  std::size_t next = 0;
  for (const auto& parameter : tied) {
    at::Tensor sum;
    const auto add = [&](const at::Tensor& gradient) {
      if (!gradient.defined()) return;
      if (sum.defined())
        sum.add_(gradient);
      else
        sum = gradient.clone();  // the uses go on accumulating if the step does
    };
    add(parameters[parameter.owner].gradient);
    for (const std::size_t use : parameter.uses)
      add(use != none ? parameters[use].gradient : elsewhere.at(next++));
    parameters[parameter.owner].tied_sum = std::move(sum);
  }
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
  for (auto& parameter : parameters) {
    parameter.gradient.reset();
    parameter.tied_sum.reset();
  }
}

}  // namespace troupe::mp::libtorch
