#include "support/local_pipeline.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/bits.hpp"

namespace troupe::mp::test {
namespace {

std::string key(const v1::ValueRef& value) {
  if (value.layer().empty()) return "field:" + value.field();
  return value.layer() + ":" + std::to_string(value.slot());
}

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}

void unwrap(Result<void> result) {
  if (!result.ok()) throw std::runtime_error(result.error().to_string());
}

/// The result of a call that completes before it returns.
template <class T, class Call>
T completed(Call&& call) {
  std::optional<Result<T>> result;
  call(Completion<T>([&](Result<T> done) { result = std::move(done); }));
  if (!result) throw std::runtime_error("the completion was not called");
  return unwrap(std::move(*result));
}

template <class Call>
void completed(Call&& call) {
  std::optional<Result<void>> result;
  call(Completion<void>([&](Result<void> done) { result = std::move(done); }));
  if (!result) throw std::runtime_error("the completion was not called");
  unwrap(std::move(*result));
}

}  // namespace

LocalPipeline::LocalPipeline(const Plan& plan, const Factory& factory) {
  for (const auto& stage : plan.stages) {
    configs_.push_back(stage.config);
    executors_.push_back(factory(stage.config));
    unwrap(executors_.back()->initialise(stage.config));
  }
}

LocalPipeline::Forward LocalPipeline::forward(const MicroBatch& micro_batch, const Fields& fields) {
  std::map<std::string, Value> values;
  for (const auto& [name, value] : fields) values["field:" + name] = value;
  Forward result;
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    ForwardTask task;
    task.micro_batch = micro_batch;
    for (const auto& inbound : configs_[i].inbound()) {
      const auto found = values.find(key(inbound.value()));
      if (found == values.end()) throw std::runtime_error("no value " + key(inbound.value()));
      task.inputs.push_back(found->second);
    }
    auto outcome = completed<ForwardOutcome>(
        [&](auto done) { executors_[i]->forward(std::move(task), std::move(done)); });
    result.outputs.clear();
    for (int out = 0; out < configs_[i].outbound_size(); ++out) {
      const std::string name = key(configs_[i].outbound(out).value());
      values[name] = outcome.outputs[static_cast<std::size_t>(out)];
      result.outputs[name] = values[name];
    }
    result.has_loss = outcome.has_loss;
    result.loss = outcome.loss;
  }
  result.values = std::move(values);
  return result;
}

LocalPipeline::Fields LocalPipeline::backward(
    const MicroBatch& micro_batch, const std::map<std::string, Value>& output_gradients) {
  std::map<std::string, Value> gradients = output_gradients;
  for (std::size_t i = executors_.size(); i-- > 0;) {
    BackwardTask task;
    task.micro_batch = micro_batch;
    for (const auto& outbound : configs_[i].outbound()) {
      const auto found = gradients.find(key(outbound.value()));
      Value absent;
      absent.absent = true;
      task.output_gradients.push_back(found == gradients.end() ? absent : found->second);
    }
    auto outcome = completed<BackwardOutcome>(
        [&](auto done) { executors_[i]->backward(std::move(task), std::move(done)); });
    for (int in = 0; in < configs_[i].inbound_size(); ++in) {
      Value& gradient = outcome.input_gradients[static_cast<std::size_t>(in)];
      if (gradient.absent) continue;
      // Where several stages read a value, the earlier one's gradient includes the later one's.
      gradients[key(configs_[i].inbound(in).value())] = std::move(gradient);
    }
  }
  return gradients;
}

std::vector<TiedStage> LocalPipeline::tied_stages() const {
  std::vector<TiedStage> stages;
  for (std::size_t i = 0; i < executors_.size(); ++i)
    stages.push_back({&configs_[i], executors_[i].get()});
  return stages;
}

std::vector<double> LocalPipeline::squared_norms() {
  std::vector<double> norms;
  for (const auto& summary : summarise_all(tied_stages()))
    norms.insert(norms.end(), summary.squared_norms.begin(), summary.squared_norms.end());
  return norms;
}

GradientNorm LocalPipeline::gradient_norm() {
  GradientNorm norm(static_cast<std::uint32_t>(executors_.size()));
  const auto summaries = summarise_all(tied_stages());
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    v1::StepReport report;
    report.set_stage(configs_[i].stage());
    report.set_first_parameter(configs_[i].first_parameter());
    report.set_finite(summaries[i].finite);
    for (const double square : summaries[i].squared_norms)
      report.add_squared_norm_bits(bits_of(square));
    unwrap(norm.add(report));
  }
  return norm;
}

void LocalPipeline::update(const StepUpdate& update) {
  const auto stages = tied_stages();
  if (exchanges_tied(stages)) summarise_all(stages);
  for (auto& executor : executors_)
    completed([&](auto done) { executor->update(update, std::move(done)); });
  if (!update.skip) exchange_tied_values(stages);
}

std::vector<NamedTensor> LocalPipeline::export_state() {
  std::vector<NamedTensor> state;
  for (auto& executor : executors_) {
    auto part = completed<std::vector<NamedTensor>>(
        [&](auto done) { executor->export_state(std::move(done)); });
    std::move(part.begin(), part.end(), std::back_inserter(state));
  }
  return state;
}

void LocalPipeline::import_state(const TensorMap& tensors) {
  for (std::size_t i = 0; i < executors_.size(); ++i) {
    std::vector<NamedTensor> part;
    for (const auto& layer : configs_[i].layers()) {
      for (const auto& parameter : layer.parameters())
        part.push_back(
            {parameter.name(),
             tensors.at(parameter.tied_to().empty() ? parameter.name() : parameter.tied_to()),
             false});
      for (const auto& buffer : layer.buffers())
        part.push_back({buffer.name(), tensors.at(buffer.name()), true});
    }
    completed([&](auto done) { executors_[i]->import_state(std::move(part), std::move(done)); });
  }
}

std::vector<MicroBatch> cut(std::uint64_t step, std::uint32_t samples, std::uint32_t size) {
  std::vector<MicroBatch> parts;
  for (std::uint32_t begin = 0; begin < samples; begin += size) {
    MicroBatch part;
    part.step = step;
    part.index = static_cast<std::uint32_t>(parts.size());
    part.samples = std::min(size, samples - begin);
    part.first_sample = begin;
    part.weight = static_cast<double>(part.samples) / samples;
    parts.push_back(part);
  }
  return parts;
}

}  // namespace troupe::mp::test
