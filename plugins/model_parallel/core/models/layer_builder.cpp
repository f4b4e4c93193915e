#include "core/models/layer_builder.hpp"

#include <cmath>
#include <utility>

namespace troupe::mp {

namespace {

void add_buffer(v1::Layer& layer, const std::string& name, std::int64_t size, double constant) {
  auto* buffer = layer.add_buffers();
  buffer->set_name(name);
  buffer->add_shape(size);
  buffer->mutable_init()->set_constant(constant);
}

}  // namespace

v1::Layer make_layer(const std::string& name, const std::string& kind) {
  v1::Layer layer;
  layer.set_name(name);
  layer.set_kind(kind);
  layer.set_outputs(1);
  return layer;
}

void set_attribute(v1::Layer& layer, const std::string& name, double value) {
  (*layer.mutable_attributes())[name] = value;
}

v1::Init constant_init(double value) {
  v1::Init init;
  init.set_constant(value);
  return init;
}

v1::Init normal_init(double std) {
  v1::Init init;
  init.set_normal_std(std);
  return init;
}

v1::Init uniform_init(double bound) {
  v1::Init init;
  init.set_uniform_bound(bound);
  return init;
}

v1::Init truncated_normal_init(double std, double bound) {
  v1::Init init;
  init.mutable_truncated_normal()->set_std(std);
  init.mutable_truncated_normal()->set_bound(bound);
  return init;
}

v1::Init xavier_uniform_init(std::int64_t inputs, std::int64_t outputs) {
  return uniform_init(std::sqrt(6.0 / static_cast<double>(inputs + outputs)));
}

v1::Init kaiming_normal_init(std::int64_t outputs, std::int64_t kernel) {
  return normal_init(std::sqrt(2.0 / static_cast<double>(outputs * kernel * kernel)));
}

void add_parameter(v1::Layer& layer, const std::string& name, const Shape& shape, v1::Init init) {
  auto* parameter = layer.add_parameters();
  parameter->set_name(name);
  for (const std::int64_t size : shape) parameter->add_shape(size);
  *parameter->mutable_init() = std::move(init);
}

void add_convolution(v1::Layer& layer, const std::string& prefix, std::int64_t outputs,
                     std::int64_t inputs_per_group, std::int64_t kernel, v1::Init init) {
  add_parameter(layer, prefix + ".weight", {outputs, inputs_per_group, kernel, kernel},
                std::move(init));
}

void add_batch_norm(v1::Layer& layer, const std::string& prefix, std::int64_t channels) {
  add_parameter(layer, prefix + ".weight", {channels}, constant_init(1));
  add_parameter(layer, prefix + ".bias", {channels}, constant_init(0));
  add_buffer(layer, prefix + ".running_mean", channels, 0.0);
  add_buffer(layer, prefix + ".running_var", channels, 1.0);
  auto* counter = layer.add_buffers();
  counter->set_name(prefix + ".num_batches_tracked");
  counter->set_integer(true);
  counter->mutable_init()->set_constant(0.0);
}

void add_layer_norm(v1::Layer& layer, const std::string& prefix, std::int64_t features) {
  add_parameter(layer, prefix + ".weight", {features}, constant_init(1));
  add_parameter(layer, prefix + ".bias", {features}, constant_init(0));
}

}  // namespace troupe::mp
