#include "libtorch/executor.hpp"

#include <algorithm>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "core/state_split.hpp"
#include "core/value_ref.hpp"
#include "libtorch/fingerprint.hpp"
#include "libtorch/gradient_norm.hpp"
#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Settings that LibTorch keeps per thread or process and that results depend on. Executors may
/// share a thread, so each sets its own before it computes.
void settle_thread(int threads) {
  // The first call in a thread would otherwise reset the number later, to another executor's.
  at::internal::lazy_init_num_threads();
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

/// The number that this process began with, whatever executors have set since.
int process_threads() {
  static const int threads = [] {
    at::internal::lazy_init_num_threads();
    return at::get_num_threads();
  }();
  return threads;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// A tensor in a floating-point type; others as they are.
at::Tensor as_floating(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.is_floating_point() ? tensor.to(type) : tensor;
}

/// A value of its own memory; absent for an undefined tensor.
Value copy_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return absent_value();
  return Value{to_host(tensor.detach().clone()), false, false};
}

/// Named tensors sharing no memory with the state, which goes on changing.
void append_copies(const std::vector<StateEntry>& entries, bool buffers,
                   std::vector<NamedTensor>& copies) {
  for (const auto& entry : entries)
    if (!entry.tied)
      copies.push_back({entry.name, to_host(entry.tensor.detach().clone()), buffers});
}

}  // namespace

LibtorchExecutor::LibtorchExecutor(at::Device device, std::shared_ptr<const LayerKinds> layers)
    : device_(device), registry_(std::move(layers)), threads_(process_threads()) {}

template <class Body>
auto LibtorchExecutor::guarded(std::string where, Body&& body) -> decltype(body()) {
  progress_ = {};
  std::string what, hint;
  try {
    const MemoryMeter::Guard measured(meter_);
    meter_->start();
    settle_thread(threads_);
    return body();
  } catch (const c10::Error& error) {
    what = first_line(error.what_without_backtrace());
    hint = "see whether shapes and types of the data and of the layers' parameters fit together";
  } catch (const std::exception& error) {
    what = first_line(error.what());
  } catch (...) {
    what = "an exception of unknown type";
  }
  if (progress_.layer != nullptr) what = "layer '" + *progress_.layer + "': " + what;
  return internal_error(std::move(where), std::move(what), std::move(hint));
}

Result<void> LibtorchExecutor::initialise(const v1::StageConfig& config) {
  stage_ = config.stage();
  if (config.threads() != 0) threads_ = static_cast<int>(config.threads());
  return guarded("initialisation", [&] { return build(config); });
}

Result<void> LibtorchExecutor::build(const v1::StageConfig& config) {
  // Denormals are flushed by hardware mode bits that threads inherit: off, so that all agree.
  at::globalContext().setFlushDenormal(false);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setBenchmarkCuDNN(false);
  TROUPE_ASSIGN(model_, StageModel::build(config, *registry_, device_, progress_));
  model_.meter = meter_;
  for (const auto& inbound : config.inbound())
    inbound_types_.push_back(inbound.has_producer() ? model_.float_type : model_.weight_type);
  const auto sent = [&](v1::DType dtype) {
    return dtype == v1::DTYPE_UNSPECIFIED ? model_.float_type : to_scalar_type(dtype);
  };
  for (const auto& outbound : config.outbound()) outbound_types_.push_back(sent(outbound.dtype()));
  for (const auto& inbound : config.inbound()) gradient_types_.push_back(sent(inbound.dtype()));
  if (config.train()) optimizer_ = Optimizer::make(config.optimizer_config(), model_.parameters);
  return {};
}

runtime::v1::NumericFingerprint LibtorchExecutor::fingerprint() const {
  auto fingerprint = process_fingerprint();
  fingerprint.set_device(device_.str());
  fingerprint.set_threads(static_cast<std::uint32_t>(threads_));
  return fingerprint;
}

void LibtorchExecutor::forward(ForwardTask task, Completion<ForwardOutcome> done) {
  done(guarded("forward", [&] { return run_forward(task); }));
}

Result<ForwardOutcome> LibtorchExecutor::run_forward(const ForwardTask& task) {
  if (task.inputs.size() != model_.inbound.size())
    return internal_error("forward", std::to_string(task.inputs.size()) + " inputs instead of " +
                                         std::to_string(model_.inbound.size()));
  std::vector<Boundary> inputs;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const Value& input = task.inputs[i];
    Boundary boundary;
    if (!input.absent) {
      const at::Tensor host = to_tensor(input.tensor);
      const auto type = host.is_floating_point() ? inbound_types_[i] : host.scalar_type();
      boundary.tensor = host.to(device_, type);
      boundary.requires_grad = input.requires_grad && host.is_floating_point();
    }
    inputs.push_back(std::move(boundary));
  }

  Activations activations(model_, task.micro_batch);
  auto computed = activations.forward(inputs, progress_);
  const std::int64_t held = meter_->held();
  ForwardOutcome outcome;
  for (std::size_t i = 0; i < computed.outputs.size(); ++i) {
    const Boundary& output = computed.outputs[i];
    Value value;
    value.absent = !output.tensor.defined();
    value.requires_grad = output.requires_grad;
    if (!value.absent) value.tensor = to_host(as_floating(output.tensor, outbound_types_[i]));
    outcome.outputs.push_back(std::move(value));
  }
  outcome.peak_compute_bytes = peak_bytes();
  outcome.has_loss = computed.has_loss;
  outcome.loss = computed.loss;
  outcome.live_bytes = activations.live_bytes();
  if (task.micro_batch.kind == v1::Key::KIND_TRAIN) {
    const auto key = std::make_pair(task.micro_batch.step, task.micro_batch.index);
    if (!live_.emplace(key, Live{std::move(activations), held}).second)
      return internal_error("forward", "the micro-batch is already live");
    held_bytes_ += held;
  }
  return outcome;
}

void LibtorchExecutor::backward(BackwardTask task, Completion<BackwardOutcome> done) {
  done(guarded("backward", [&] { return run_backward(task); }));
}

Result<BackwardOutcome> LibtorchExecutor::run_backward(const BackwardTask& task) {
  auto live = live_.extract({task.micro_batch.step, task.micro_batch.index});
  if (live.empty()) return internal_error("backward", "its forward has not run");
  if (task.output_gradients.size() != model_.outbound.size())
    return internal_error("backward", std::to_string(task.output_gradients.size()) +
                                          " output gradients instead of " +
                                          std::to_string(model_.outbound.size()));
  std::vector<at::Tensor> output_gradients;
  for (const auto& gradient : task.output_gradients)
    output_gradients.push_back(
        gradient.absent ? at::Tensor() : to_tensor(gradient.tensor).to(device_, model_.float_type));

  BackwardOutcome outcome;
  tied_summed_ = false;
  const auto gradients =
      live.mapped().activations.backward(output_gradients, task.loss_scale, progress_);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Value value;
    value.absent = !gradients[i].defined();
    if (!value.absent) value.tensor = to_host(as_floating(gradients[i], gradient_types_[i]));
    outcome.input_gradients.push_back(std::move(value));
  }
  outcome.peak_compute_bytes = peak_bytes();
  held_bytes_ -= live.mapped().held_bytes;
  return outcome;
}

std::uint64_t LibtorchExecutor::peak_bytes() const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, held_bytes_ + meter_->peak()));
}

void LibtorchExecutor::take_tied_gradients(std::vector<Value> gradients, Completion<void> done) {
  done(guarded("tied gradients", [&] { return keep_tied_gradients(gradients); }));
}

Result<void> LibtorchExecutor::keep_tied_gradients(const std::vector<Value>& gradients) {
  std::vector<at::Tensor> taken;
  for (const auto& parameter : model_.tied) {
    const StateEntry& owner = model_.parameters[parameter.owner];
    for (const std::size_t use : parameter.uses) {
      if (use != StageModel::none) continue;
      if (taken.size() == gradients.size())
        return internal_error("tied gradients", "the gradients of " + owner.name + " are missing");
      const Value& gradient = gradients[taken.size()];
      if (!gradient.absent && gradient.tensor.shape != owner.tensor.sizes().vec())
        return internal_error("tied gradients", "one of " + owner.name + " has shape " +
                                                    to_string(gradient.tensor.shape));
      taken.push_back(gradient.absent ? at::Tensor()
                                      : to_tensor(gradient.tensor).to(device_, model_.weight_type));
    }
  }
  tied_gradients_ = std::move(taken);
  tied_summed_ = false;
  return {};
}

Result<void> LibtorchExecutor::complete_gradients() {
  model_.collect_gradients();
  std::size_t elsewhere = 0;
  for (const auto& parameter : model_.tied)
    for (const std::size_t use : parameter.uses) elsewhere += use == StageModel::none ? 1 : 0;
  if (elsewhere != tied_gradients_.size())
    return internal_error("tied gradients", "they have not come from all stages");
  if (!tied_summed_) model_.sum_tied_gradients(tied_gradients_);
  tied_summed_ = true;
  return {};
}

void LibtorchExecutor::summarise_gradients(Completion<GradientSummary> done) {
  done(guarded("gradient norms", [&]() -> Result<GradientSummary> {
    const c10::NoGradGuard no_grad;
    TROUPE_TRY(complete_gradients());
    GradientSummary summary;
    for (const auto& parameter : model_.parameters) {
      const SquaredNorm norm =
          parameter.tied ? SquaredNorm() : squared_norm(parameter.whole_gradient());
      summary.squared_norms.push_back(norm.value);
      summary.finite &= norm.finite;
    }
    for (const std::size_t use : model_.tied_copies)
      summary.tied_gradients.push_back(copy_of(model_.parameters[use].gradient));
    return summary;
  }));
}

void LibtorchExecutor::update(StepUpdate update, Completion<void> done) {
  done(guarded("optimizer step", [&]() -> Result<void> {
    const c10::NoGradGuard no_grad;
    if (!model_.frozen && optimizer_ && !update.skip) {
      TROUPE_TRY(complete_gradients());
      optimizer_->step(model_.parameters, update.lr, update.scale);
    }
    if (model_.deferred) {
      if (update.skip)
        model_.deferred->discard();
      else
        model_.deferred->commit();
    }
    clear_gradients();
    return {};
  }));
}

void LibtorchExecutor::clear_gradients() {
  model_.clear_gradients();
  tied_gradients_.clear();
  tied_summed_ = false;
}

void LibtorchExecutor::export_tied_values(Completion<std::vector<Value>> done) {
  done(guarded("export of tied weights", [&]() -> Result<std::vector<Value>> {
    std::vector<Value> values;
    for (const auto& parameter : model_.tied)
      values.push_back(parameter.shared_elsewhere
                           ? copy_of(model_.parameters[parameter.owner].tensor)
                           : absent_value());
    return values;
  }));
}

void LibtorchExecutor::export_state(Completion<std::vector<NamedTensor>> done) {
  done(guarded("export", [&]() -> Result<std::vector<NamedTensor>> {
    std::vector<NamedTensor> copies;
    append_copies(model_.parameters, false, copies);
    append_copies(model_.buffers, true, copies);
    return copies;
  }));
}

void LibtorchExecutor::import_state(std::vector<NamedTensor> tensors, Completion<void> done) {
  done(guarded("import", [&]() -> Result<void> {
    TROUPE_TRY(check_import(tensors));
    const c10::NoGradGuard no_grad;
    for (const auto& tensor : tensors)
      find_state(tensor.name)->tensor.copy_(to_tensor(tensor.tensor));
    return {};
  }));
}

Result<void> LibtorchExecutor::check_import(const std::vector<NamedTensor>& tensors) const {
  for (const auto& tensor : tensors) {
    const StateEntry* entry = const_cast<LibtorchExecutor*>(this)->find_state(tensor.name);
    if (entry == nullptr)
      return bad_input(
          "tensor '" + tensor.name + "'",
          "stage " + std::to_string(stage_) + " has no parameter or buffer of this name");
    const Shape shape = entry->tensor.sizes().vec();
    if (tensor.tensor.shape != shape)
      return bad_input("tensor '" + tensor.name + "'", "shape " + to_string(tensor.tensor.shape) +
                                                           " instead of " + to_string(shape));
    const v1::DType type = to_dtype(entry->tensor.scalar_type());
    if (!can_import(tensor.tensor.dtype, type))
      return wrong_type("stage " + std::to_string(stage_), "'" + tensor.name + "'",
                        tensor.tensor.dtype, type);
  }
  return {};
}

StateEntry* LibtorchExecutor::find_state(const std::string& name) {
  for (auto* entries : {&model_.parameters, &model_.buffers})
    for (auto& entry : *entries)
      if (entry.name == name) return &entry;
  return nullptr;
}

void LibtorchExecutor::discard_all() {
  live_.clear();
  if (model_.deferred) model_.deferred->discard();
  held_bytes_ = 0;
  clear_gradients();
}

std::vector<NamedTensor> LibtorchExecutor::gradients() {
  const c10::NoGradGuard no_grad;
  model_.collect_gradients();
  std::vector<NamedTensor> found;
  for (const auto& parameter : model_.parameters)
    if (!parameter.tied && parameter.whole_gradient().defined())
      found.push_back({parameter.name, to_host(parameter.whole_gradient().clone()), false});
  return found;
}

}  // namespace troupe::mp::libtorch
