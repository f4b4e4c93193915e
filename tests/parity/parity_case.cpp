#include "parity/parity_case.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/gradient_norm.hpp"
#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "libtorch/executor.hpp"
#include "parity/python.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

namespace troupe::mp::test {
namespace {

std::string request_of(const ParityRuns& runs) {
  nlohmann::json request = {{"model", runs.model.name},    {"classes", runs.model.classes},
                            {"inputs", runs.model.inputs}, {"vocabulary", runs.model.vocabulary},
                            {"batch", runs.batch},         {"micro_batch", runs.micro_batch},
                            {"steps", runs.steps},         {"cross_entropy", runs.cross_entropy},
                            {"float32", runs.float32},     {"updates", nlohmann::json::object()}};
  for (const auto& [name, update] : runs.updates)
    request["updates"][name] = {{"lr", update.sgd.lr()},
                                {"momentum", update.sgd.momentum()},
                                {"dampening", update.sgd.dampening()},
                                {"weight_decay", update.sgd.weight_decay()},
                                {"nesterov", update.sgd.nesterov()},
                                {"clip", update.clip}};
  return request.dump();
}

Plan plan_for(const ParityRuns& runs, const Update& update, std::vector<std::string> cuts,
              v1::Precision precision) {
  PlanRequest request;
  request.job = "parity";
  request.seed = 1;
  request.layers = must(list_layers(config_of(runs.model)));
  request.nodes = {"here"};
  cuts.push_back("loss");
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    v1::Stage stage;
    stage.set_node("here");
    stage.set_device("cpu");
    stage.set_threads(1);
    if (i > 0) stage.set_first_layer(cuts[i - 1]);
    request.stages.push_back(stage);
  }
  request.loss.emplace();
  if (runs.cross_entropy)
    request.loss->mutable_cross_entropy();
  else
    request.loss->mutable_mse();
  request.optimizer.emplace();
  *request.optimizer->mutable_sgd() = update.sgd;
  request.precision = precision;
  return must(make_plan(request));
}

/// A micro-batch's rows of the data, whose steps stand one behind the other.
LocalPipeline::Fields fields_of(const SafetensorsFile& data, const ParityRuns& runs,
                                const MicroBatch& part) {
  LocalPipeline::Fields fields;
  for (const std::string name : {"inputs", "targets"}) {
    const auto begin = static_cast<std::int64_t>(part.step * runs.batch + part.first_sample);
    fields[name].tensor = must(data.tensor(name)).rows(begin, begin + part.samples);
  }
  return fields;
}

void record_gradients(LocalPipeline& pipeline, Tensors& results) {
  for (std::size_t i = 0; i < pipeline.stages(); ++i)
    for (const auto& gradient :
         static_cast<libtorch::LibtorchExecutor&>(pipeline.stage(i)).gradients())
      results["gradient/" + gradient.name] = as_doubles(gradient.tensor);
}

double largest(const std::vector<double>& numbers) {
  double most = 0;
  for (const double number : numbers) most = std::max(most, std::abs(number));
  return most;
}

}  // namespace

Reference::Reference(ParityRuns runs) : runs_(std::move(runs)) {
  run_python("reference.py",
             {directory_.path().string(), directory_.write("request.json", request_of(runs_))});
}

std::string Reference::file(const std::string& name) const {
  return (directory_.path() / (name + ".safetensors")).string();
}

SafetensorsFile Reference::open(const std::string& name) const {
  return must(SafetensorsFile::open(file(name)));
}

Tensors troupe_results(const Reference& reference, const std::string& update_name,
                       const std::vector<std::string>& cuts, v1::Precision precision,
                       std::uint32_t steps) {
  const ParityRuns& runs = reference.runs();
  const Update& update = runs.updates.at(update_name);
  LocalPipeline pipeline(plan_for(runs, update, cuts, precision), libtorch_executor);
  TensorMap start;
  const auto start_file = reference.open("start");
  for (const auto& name : start_file.names()) start[name] = must(start_file.tensor(name));
  pipeline.import_state(start);

  const auto data = reference.open("data");
  Tensors results;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::string suffix = "/" + std::to_string(step);
    double loss = 0;
    for (const auto& part : cut(step, runs.batch, runs.micro_batch)) {
      const auto forward = pipeline.forward(part, fields_of(data, runs, part));
      loss += forward.loss.loss * part.weight;
      const auto logits = as_doubles(forward.values.at(runs.model.output).tensor);
      std::copy(logits.begin(), logits.end(), std::back_inserter(results["logits" + suffix]));
      pipeline.backward(part);
    }
    results["loss" + suffix] = {loss};
    const GradientNorm norm = pipeline.gradient_norm();
    // Only now are gradients of weights that stages share added up.
    if (step == 0) record_gradients(pipeline, results);
    results["norm" + suffix] = {norm.norm()};
    pipeline.update({{update.sgd.lr()}, clip_factor(norm.norm(), update.clip)});
    if (step != 0 && step + 1 != runs.steps) continue;
    for (const auto& tensor : pipeline.export_state())
      results["state" + suffix + "/" + tensor.name] = as_doubles(tensor.tensor);
  }
  return results;
}

std::vector<double> as_doubles(const HostTensor& tensor) {
  const std::size_t count = static_cast<std::size_t>(must(element_count(tensor.shape)));
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (tensor.dtype) {
      case v1::DTYPE_FLOAT32: numbers[i] = tensor.as<float>()[i]; break;
      case v1::DTYPE_FLOAT64: numbers[i] = tensor.as<double>()[i]; break;
      case v1::DTYPE_INT64: numbers[i] = static_cast<double>(tensor.as<std::int64_t>()[i]); break;
      default: throw std::runtime_error("unexpected type " + to_string(tensor.dtype));
    }
  }
  return numbers;
}

double relative_error(const std::vector<double>& ours, const std::vector<double>& reference) {
  if (ours.size() != reference.size())
    throw std::runtime_error(std::to_string(ours.size()) + " elements instead of " +
                             std::to_string(reference.size()));
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(ours[i] - reference[i]);
    if (!(difference <= most)) most = difference;
  }
  return most / std::max(largest(reference), 1e-30);
}

}  // namespace troupe::mp::test
