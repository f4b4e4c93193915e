#include "fake/fake_layer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/convert.hpp"
#include "core/random.hpp"
#include "core/value_ref.hpp"
#include "fake/fake_arithmetic.hpp"

namespace troupe::mp {
namespace {

std::uint64_t digest_of(const HostTensor& tensor) { return Digest().add(tensor).value(); }

}  // namespace

FakeLayer::FakeLayer(const v1::Layer& config, std::uint64_t seed, v1::DType dtype, v1::DType master,
                     FakeMemory& memory)
    : config_(config), dtype_(dtype), memory_(memory) {
  const auto add = [&](const v1::Parameter& tensor, bool buffer) {
    tensors_.push_back(
        {tensor, buffer, memory_.store(initial_tensor(tensor, seed, master)), {}, {}});
  };
  for (const auto& parameter : config.parameters()) add(parameter, false);
  for (const auto& buffer : config.buffers()) add(buffer, true);
}

double FakeLayer::attribute(const std::string& name, double fallback) const {
  const auto found = config_.attributes().find(name);
  return found == config_.attributes().end() ? fallback : found->second;
}

bool FakeLayer::is_loss() const { return is_loss_kind(config_.kind()); }

std::optional<int> FakeLayer::library_version() const {
  const double version = attribute("library_version", -1);
  if (version < 0) return std::nullopt;
  return static_cast<int>(version);
}

Result<void> FakeLayer::inject_failure(const MicroBatch& micro_batch, bool backward) const {
  const bool here = micro_batch.kind == v1::Key::KIND_TRAIN &&
                    attribute("fail_at_step", -1) == static_cast<double>(micro_batch.step) &&
                    attribute("fail_at_micro_batch", 0) == micro_batch.index &&
                    (attribute("fail_in_backward", 0) != 0) == backward;
  if (here) return internal_error("layer " + config_.name(), "injected failure");
  return {};
}

Shape FakeLayer::output_shape(const MicroBatch& micro_batch,
                              const std::vector<Value>& inputs) const {
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](const Value& input) {
    return !input.absent && !input.tensor.shape.empty();
  });
  Shape shape{micro_batch.samples};
  if (first != inputs.end()) shape = first->tensor.shape;
  const auto elements = attribute("output_elements", attribute("out_features", 0));
  if (elements > 0) shape = {shape[0], static_cast<std::int64_t>(elements)};
  return shape;
}

std::uint64_t FakeLayer::weights_digest(bool buffers) const {
  Digest digest;
  for (const auto& tensor : tensors_)
    if (!tensor.buffer || buffers) digest.add(tensor.stored->load());
  return digest.value();
}

void FakeLayer::update_buffers(std::uint64_t digest) {
  for (auto& tensor : tensors_) {
    if (!tensor.buffer) continue;
    const auto old = tensor.stored->load();
    const auto seed = Digest().add(digest).add(old).value();
    tensor.stored = memory_.store(tensor_from_digest(seed, old.dtype, old.shape));
  }
}

Result<FakeLayer::Forward> FakeLayer::forward(const MicroBatch& micro_batch,
                                              const std::vector<Value>& inputs, bool again) {
  TROUPE_TRY(inject_failure(micro_batch, false));
  const bool training = micro_batch.kind == v1::Key::KIND_TRAIN;
  // As batch norm does: running statistics count in evaluation and are only written in training.
  Digest digest;
  digest.add(config_.name()).add(config_.kind()).add(weights_digest(!training));
  for (const auto& input : inputs) digest.add(input);
  if (training && !again) update_buffers(digest.value());

  Forward result;
  if (is_loss()) {
    const bool has_targets = inputs.size() == 2 && !inputs[0].absent && !inputs[1].absent;
    if (!has_targets && micro_batch.kind != v1::Key::KIND_INFER)
      return internal_error("layer " + config_.name(), "the loss needs outputs and targets");
    const bool counts = micro_batch.kind == v1::Key::KIND_EVAL;
    if (has_targets)
      result.loss = LossValue{
          digest.unit_number(),
          counts ? static_cast<std::uint32_t>(digest.value() % (micro_batch.samples + 1)) : 0};
    result.outputs.assign(std::max<std::uint32_t>(config_.outputs(), 1), absent_value());
    return result;
  }
  const bool reached = std::any_of(inputs.begin(), inputs.end(),
                                   [](const Value& input) { return input.requires_grad; });
  const bool wants_gradient = training && (reached || config_.parameters_size() > 0);
  const auto shape = output_shape(micro_batch, inputs);
  const auto slots = std::max<std::uint32_t>(config_.outputs(), 1);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    if (attribute("absent_slot", -1) == slot) {
      result.outputs.push_back(absent_value());
      continue;
    }
    const auto dtype = attribute("int64_slot", -1) == slot ? v1::DTYPE_INT64 : dtype_;
    Value output;
    output.tensor = tensor_from_digest(
        Digest().add(digest.value()).add(std::uint64_t{slot}).value(), dtype, shape);
    output.requires_grad = wants_gradient && is_floating(dtype);
    result.outputs.push_back(std::move(output));
  }
  return result;
}

Result<std::vector<Value>> FakeLayer::backward(const MicroBatch& micro_batch,
                                               const std::vector<Value>& inputs,
                                               const std::vector<Value>& output_gradients,
                                               double loss_scale) {
  TROUPE_TRY(inject_failure(micro_batch, true));
  std::vector<Value> gradients(inputs.size(), absent_value());
  const bool reached =
      is_loss() || std::any_of(output_gradients.begin(), output_gradients.end(),
                               [](const Value& gradient) { return !gradient.absent; });
  if (!reached) return gradients;

  Digest digest;
  digest.add(config_.name()).add(weights_digest(false));
  if (is_loss()) digest.add(micro_batch.weight * loss_scale);
  for (const auto& input : inputs) digest.add(input);
  for (const auto& gradient : output_gradients) digest.add(gradient);

  overflowed_ |= attribute("overflow_at_step", -1) == static_cast<double>(micro_batch.step);
  for (auto& tensor : tensors_) {
    if (tensor.buffer) continue;
    Digest accumulated;
    accumulated.add(tensor.gradient.value_or(0)).add(digest.value()).add(tensor.config.name());
    tensor.gradient = accumulated.value();
  }
  if (attribute("no_input_gradients", 0) != 0) return gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad) continue;
    const auto seed = Digest().add(digest.value()).add(std::uint64_t{i}).value();
    gradients[i].absent = false;
    gradients[i].tensor = tensor_from_digest(seed, inputs[i].tensor.dtype, inputs[i].tensor.shape);
  }
  return gradients;
}

std::vector<double> FakeLayer::squared_norms() const {
  std::vector<double> norms;
  for (const auto& tensor : tensors_) {
    if (tensor.buffer) continue;
    const auto gradient = tensor.whole_gradient();
    const bool counts = tensor.config.tied_to().empty() && gradient;
    norms.push_back(counts ? Digest().add(*gradient).unit_number() : 0.0);
    if (counts && overflowed_) norms.back() = std::numeric_limits<double>::infinity();
  }
  return norms;
}

void FakeLayer::update(const StepUpdate& update, bool frozen) {
  for (auto& tensor : tensors_) {
    const auto gradient = tensor.whole_gradient();
    if (!gradient || frozen || update.skip || !tensor.config.tied_to().empty()) continue;
    const auto old = tensor.stored->load();
    auto digest = Digest().add(digest_of(old)).add(*gradient).add(update.scale);
    for (const double lr : update.lr) digest.add(lr);
    tensor.stored = memory_.store(tensor_from_digest(digest.value(), old.dtype, old.shape));
  }
  clear_gradients();
}

void FakeLayer::clear_gradients() {
  overflowed_ = false;
  for (auto& tensor : tensors_) {
    tensor.gradient.reset();
    tensor.tied.clear();
  }
}

std::optional<std::uint64_t> FakeLayer::Tensor::whole_gradient() const {
  auto whole = gradient;
  for (const auto use : tied) whole = Digest().add(whole.value_or(0)).add(use).value();
  return whole;
}

FakeLayer::Tensor* FakeLayer::find(const std::string& name) {
  return const_cast<Tensor*>(std::as_const(*this).find(name));
}

const FakeLayer::Tensor* FakeLayer::find(const std::string& name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
    return tensor.config.name() == name;
  });
  return found == tensors_.end() ? nullptr : &*found;
}

Result<void> FakeLayer::replace(const std::string& name, const HostTensor& tensor) {
  for (auto& candidate : tensors_) {
    if (candidate.config.name() != name) continue;
    TROUPE_ASSIGN(const HostTensor converted, convert(tensor, candidate.stored->load().dtype));
    candidate.stored = memory_.store(converted);
  }
  return {};
}

}  // namespace troupe::mp
