#include "libtorch/activations.hpp"

#include <utility>

#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include "libtorch/autocast.hpp"
#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {
namespace {

bool any_absent(const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors)
    if (!tensor.defined()) return true;
  return false;
}

/// Puts a layer's buffers back to what they were: running statistics were updated by the first
/// forward.
class SavedBuffers {
 public:
  SavedBuffers(StageModel& model, const WiredLayer& wired) : model_(model), wired_(wired) {
    const c10::NoGradGuard no_grad;
    for (const std::size_t i : wired.buffers) saved_.push_back(model.buffers[i].tensor.clone());
  }
  ~SavedBuffers() {
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < saved_.size(); ++i)
      model_.buffers[wired_.buffers[i]].tensor.copy_(saved_[i]);
  }
  SavedBuffers(const SavedBuffers&) = delete;
  SavedBuffers& operator=(const SavedBuffers&) = delete;

 private:
  StageModel& model_;
  const WiredLayer& wired_;
  std::vector<at::Tensor> saved_;
};

}  // namespace

Activations::Outcome Activations::forward(const std::vector<Boundary>& inputs, Progress& progress) {
  const bool keep = micro_batch_.kind == v1::Key::KIND_TRAIN;
  const c10::AutoGradMode grad_mode(keep);
  Outcome outcome;
  std::vector<Boundary> values(model_->last_reader.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    live_bytes_ += byte_size(inputs[i].tensor);
    values[model_->inbound[i]] = inputs[i];
  }
  for (std::size_t i = 0; i < model_->layers.size(); ++i) {
    const WiredLayer& wired = model_->layers[i];
    progress.layer = &wired.name;
    if (keep) keep_inputs(wired, values);
    Record record = run_layer(wired, values, /*again=*/false);
    if (wired.layer->is_loss()) read_loss(wired, record, outcome);
    for (std::size_t slot = 0; slot < wired.writes.size(); ++slot)
      if (model_->segment_of(wired.writes[slot]) == StageModel::none)
        live_bytes_ += byte_size(record.outputs[slot]);
    // The graph of a layer that is recomputed ends here.
    if (wired.segment != StageModel::none) record = {};
    if (keep) records_.push_back(std::move(record));
    for (const std::size_t value : wired.reads)
      if (model_->last_reader[value] == i) values[value] = {};
  }
  progress.layer = nullptr;
  for (const std::size_t value : model_->outbound) outcome.outputs.push_back(values[value]);
  if (!keep) live_bytes_ = 0;
  return outcome;
}

void Activations::keep_inputs(const WiredLayer& wired, const std::vector<Boundary>& values) {
  if (wired.segment == StageModel::none) return;
  auto& kept = segment_inputs_[wired.segment];
  for (const std::size_t value : wired.reads) {
    const std::size_t writer = model_->writer[value];
    if (writer == StageModel::none || model_->layers[writer].segment != wired.segment)
      kept[value] = values[value];
  }
}

Activations::Record Activations::run_layer(const WiredLayer& wired, std::vector<Boundary>& values,
                                           bool again) const {
  const bool loss = wired.layer->is_loss();
  Record record;
  for (const std::size_t value : wired.reads) {
    const Boundary& boundary = values[value];
    at::Tensor input = boundary.tensor;
    // Fields of the batch come in the type of the weights, which the loss alone takes as it is.
    if (!loss && input.defined() && input.is_floating_point()) input = input.to(model_->float_type);
    at::Tensor leaf = in_layout(input, wired.layer->layout());
    if (boundary.requires_grad && c10::GradMode::is_enabled()) leaf.set_requires_grad(true);
    record.leaves.push_back(std::move(leaf));
  }
  if (loss && any_absent(record.leaves)) {
    TORCH_CHECK(micro_batch_.kind == v1::Key::KIND_INFER,
                "the loss needs outputs and targets, and one of them is absent");
    record.outputs.resize(wired.writes.size());
    return record;
  }
  record.outputs = compute(wired, record.leaves, again);
  TORCH_CHECK(record.outputs.size() == wired.writes.size(), "returned ", record.outputs.size(),
              " values instead of ", wired.writes.size());
  for (std::size_t slot = 0; slot < wired.writes.size(); ++slot) {
    at::Tensor& output = record.outputs[slot];
    if (!output.defined()) continue;
    // What another stage would get is what the next layer gets here.
    if (!loss && output.is_floating_point())
      output = rounded(wired.writes[slot], output.to(model_->float_type));
    values[wired.writes[slot]] = {output.detach(), output.requires_grad()};
  }
  return record;
}

std::vector<at::Tensor> Activations::compute(const WiredLayer& wired,
                                             const std::vector<at::Tensor>& leaves,
                                             bool again) const {
  ForwardContext context;
  context.training = micro_batch_.kind == v1::Key::KIND_TRAIN;
  context.recomputing = again;
  context.deferred = model_->deferred.get();
  context.micro_batch = micro_batch_;
  context.seed = model_->seed;
  if (!model_->mixed()) return wired.layer->forward(leaves, context);
  std::vector<at::Tensor> inputs;
  for (const auto& leaf : leaves)
    inputs.push_back(leaf.defined() && leaf.is_floating_point() ? leaf.to(model_->weight_type)
                                                                : leaf);
  if (wired.layer->is_loss()) return wired.layer->forward(inputs, context);
  const Autocast autocast(model_->device, model_->float_type);
  return wired.layer->forward(inputs, context);
}

at::Tensor Activations::rounded(std::size_t value, const at::Tensor& tensor) const {
  const at::ScalarType wire = model_->wires[value];
  if (wire == at::ScalarType::Undefined || wire == tensor.scalar_type()) return tensor;
  return tensor.to(wire).to(tensor.scalar_type());
}

void Activations::read_loss(const WiredLayer& wired, const Record& record, Outcome& outcome) const {
  if (!record.outputs[0].defined()) return;
  const c10::NoGradGuard no_grad;
  outcome.has_loss = true;
  outcome.loss.loss = record.outputs[0].item<double>();
  if (micro_batch_.kind == v1::Key::KIND_EVAL)
    outcome.loss.correct = wired.layer->count_correct(record.leaves);
}

std::vector<at::Tensor> Activations::backward(const std::vector<at::Tensor>& output_gradients,
                                              double loss_scale, Progress& progress) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients(model_->last_reader.size());
  for (std::size_t i = 0; i < output_gradients.size(); ++i)
    gradients[model_->outbound[i]] = output_gradients[i];
  for (std::size_t i = model_->layers.size(); i-- > 0;) {
    const std::size_t segment = model_->layers[i].segment;
    if (segment != StageModel::none && segment_inputs_.count(segment) != 0) recompute(i, progress);
    progress.layer = &model_->layers[i].name;
    run_layer_backward(model_->layers[i], std::move(records_[i]), loss_scale, gradients);
    records_.pop_back();
  }
  progress.layer = nullptr;
  std::vector<at::Tensor> input_gradients;
  for (const std::size_t value : model_->inbound) input_gradients.push_back(gradients[value]);
  return input_gradients;
}

void Activations::recompute(std::size_t last, Progress& progress) {
  const c10::AutoGradMode grad_mode(true);
  const std::size_t first = model_->layers[last].segment;
  std::vector<Boundary> values(model_->last_reader.size());
  auto kept = segment_inputs_.extract(first);
  for (auto& [value, boundary] : kept.mapped()) values[value] = std::move(boundary);
  for (std::size_t i = first; i <= last; ++i) {
    progress.layer = &model_->layers[i].name;
    const SavedBuffers saved(*model_, model_->layers[i]);
    records_[i] = run_layer(model_->layers[i], values, /*again=*/true);
  }
}

void Activations::run_layer_backward(const WiredLayer& wired, Record record, double loss_scale,
                                     std::vector<at::Tensor>& gradients) const {
  // [life:6] The backward starts from the loss with the micro-batch's weight.
  if (wired.layer->is_loss() && record.outputs[0].defined())
    gradients[wired.writes[0]] =
        at::full_like(record.outputs[0].detach(), micro_batch_.weight * loss_scale);
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> root_gradients;
  for (std::size_t slot = 0; slot < wired.writes.size(); ++slot) {
    at::Tensor gradient = std::move(gradients[wired.writes[slot]]);
    if (!gradient.defined() || !record.outputs[slot].defined()) continue;
    if (!record.outputs[slot].requires_grad()) continue;
    roots.push_back(std::move(record.outputs[slot]));
    root_gradients.push_back(in_layout(gradient, wired.layer->layout()));
  }
  if (roots.empty()) return;

  std::vector<at::Tensor> wanted;
  for (const auto& leaf : record.leaves)
    if (leaf.defined() && leaf.requires_grad()) wanted.push_back(leaf);
  for (const std::size_t i : wired.parameters)
    if (model_->parameters[i].tensor.requires_grad())
      wanted.push_back(model_->parameters[i].tensor);
  auto found = torch::autograd::grad(roots, wanted, root_gradients, /*retain_graph=*/false,
                                     /*create_graph=*/false, /*allow_unused=*/true);
  roots.clear();
  root_gradients.clear();

  std::size_t next = 0;
  std::vector<at::Tensor> leaf_gradients(record.leaves.size());
  for (std::size_t i = 0; i < record.leaves.size(); ++i)
    if (record.leaves[i].defined() && record.leaves[i].requires_grad())
      leaf_gradients[i] = std::exchange(found[next++], {});
  for (std::size_t i = record.leaves.size(); i-- > 0;) {
    at::Tensor& sum = gradients[wired.reads[i]];
    if (!leaf_gradients[i].defined()) continue;
    sum = rounded(wired.reads[i], sum.defined() ? leaf_gradients[i].add(sum) : leaf_gradients[i]);
  }
  // [life:7] Parameter gradients accumulate in the order of the backward calls.
  for (const std::size_t i : wired.parameters) {
    if (!model_->parameters[i].tensor.requires_grad()) continue;
    at::Tensor gradient = std::exchange(found[next++], {});
    if (!gradient.defined()) continue;
    StateEntry& parameter = model_->parameters[i];
    const bool first = !parameter.gradient.defined();
    parameter.add_gradient(std::move(gradient));
    if (first && model_->meter)
      model_->meter->exclude(static_cast<std::int64_t>(byte_size(parameter.gradient)));
  }
}

}  // namespace troupe::mp::libtorch
