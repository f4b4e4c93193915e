#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

namespace troupe::mp::test {

inline v1::Layer layer(const std::string& name, const std::string& kind,
                       std::uint32_t outputs = 1) {
  v1::Layer config;
  config.set_name(name);
  config.set_kind(kind);
  config.set_outputs(outputs);
  return config;
}

/// A linear layer of this size with random initial weights.
inline v1::Layer linear(const std::string& name, std::int64_t in, std::int64_t out) {
  v1::Layer config = layer(name, "linear");
  auto* weight = config.add_parameters();
  weight->set_name(name + ".weight");
  weight->add_shape(out);
  weight->add_shape(in);
  weight->mutable_init()->set_normal_std(0.5);
  auto* bias = config.add_parameters();
  bias->set_name(name + ".bias");
  bias->add_shape(out);
  bias->mutable_init()->set_normal_std(0.5);
  return config;
}

inline void read(v1::Layer& config, const std::string& layer, std::uint32_t slot = 0) {
  auto* value = config.add_reads();
  value->set_layer(layer);
  value->set_slot(slot);
}

inline void read_field(v1::Layer& config, const std::string& field) {
  config.add_reads()->set_field(field);
}

/// Stages on "here", each beginning with one of `first_layers` after the first; SGD; float64.
inline PlanRequest request(std::vector<v1::Layer> layers,
                           const std::vector<std::string>& first_layers) {
  PlanRequest request;
  request.job = "test";
  request.seed = 11;
  request.layers = std::move(layers);
  request.nodes = {"here"};
  for (std::size_t i = 0; i <= first_layers.size(); ++i) {
    v1::Stage stage;
    stage.set_node("here");
    stage.set_threads(1);
    if (i > 0) stage.set_first_layer(first_layers[i - 1]);
    request.stages.push_back(stage);
  }
  request.optimizer.emplace();
  request.optimizer->mutable_sgd()->set_lr(0.1);
  request.optimizer->mutable_sgd()->set_momentum(0.9);
  request.precision = v1::PRECISION_FLOAT64;
  return request;
}

inline Plan plan(const PlanRequest& request) {
  auto made = make_plan(request);
  if (!made.ok()) throw std::runtime_error(made.error().to_string());
  return std::move(made).value();
}

/// Executors with the built-in layers and some of the test's own.
inline LocalPipeline::Factory factory(const Kinds& kinds = {}) {
  return [registry = layer_registry(kinds)](const v1::StageConfig&) {
    return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), registry);
  };
}

/// A double tensor with a fixed pattern of numbers.
inline HostTensor pattern(Shape shape) {
  HostTensor host;
  host.dtype = v1::DTYPE_FLOAT64;
  std::size_t count = 1;
  for (const auto n : shape) count *= static_cast<std::size_t>(n);
  host.shape = std::move(shape);
  host.data = Blob::uninitialized(count * sizeof(double));
  auto* numbers = reinterpret_cast<double*>(host.data.mutable_data());
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<double>((i * 37 + 11) % 101) / 53.0 - 0.9;
  return host;
}

inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

}  // namespace troupe::mp::test
