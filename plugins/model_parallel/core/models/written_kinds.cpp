#include "core/models/written_kinds.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>

#include "core/models/layer_builder.hpp"
#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

constexpr double most_features = 2147483647.0;

/// The attributes of a layer that has to be completed.
class Attributes {
 public:
  Attributes(const v1::Layer& layer, const std::string& where)
      : layer_(layer), where_(where + ".attributes") {}

  /// A positive integer that must be there.
  Result<std::int64_t> size(const std::string& name) const {
    const auto found = layer_.attributes().find(name);
    if (found == layer_.attributes().end())
      return bad_input(where_, "layer '" + layer_.name() + "' has neither parameters nor " + name,
                       "write the attribute " + name);
    return positive(name, found->second);
  }

  Result<std::int64_t> size_or(const std::string& name, std::int64_t fallback) const {
    const auto found = layer_.attributes().find(name);
    if (found == layer_.attributes().end()) return fallback;
    return positive(name, found->second);
  }

  /// On unless it is written as 0.
  bool flag(const std::string& name) const {
    const auto found = layer_.attributes().find(name);
    return found == layer_.attributes().end() || found->second != 0;
  }

  Error error(const std::string& what) const { return bad_input(where_, what); }

 private:
  Result<std::int64_t> positive(const std::string& name, double value) const {
    if (!(value >= 1 && value <= most_features) || value != std::floor(value))
      return error(name + " of layer '" + layer_.name() + "' is not a positive integer");
    return static_cast<std::int64_t>(value);
  }

  const v1::Layer& layer_;
  std::string where_;
};

Result<void> complete_linear(v1::Layer& layer, const Attributes& attributes) {
  TROUPE_ASSIGN(const std::int64_t inputs, attributes.size("in_features"));
  TROUPE_ASSIGN(const std::int64_t outputs, attributes.size("out_features"));
  add_linear_parameters(layer, layer.name(), inputs, outputs, attributes.flag("bias"));
  return {};
}

Result<void> complete_convolution(v1::Layer& layer, const Attributes& attributes) {
  TROUPE_ASSIGN(const std::int64_t inputs, attributes.size("in_channels"));
  TROUPE_ASSIGN(const std::int64_t outputs, attributes.size("out_channels"));
  TROUPE_ASSIGN(const std::int64_t kernel, attributes.size("kernel_size"));
  TROUPE_ASSIGN(const std::int64_t groups, attributes.size_or("groups", 1));
  if (inputs % groups != 0 || outputs % groups != 0)
    return attributes.error("in_channels and out_channels of layer '" + layer.name() +
                            "' are not multiples of its groups");
  // Conv2d.reset_parameters: Kaiming uniform with a = sqrt(5) comes to this bound.
  const std::int64_t fan_in = inputs / groups * kernel * kernel;
  const v1::Init init = uniform_init(1 / std::sqrt(static_cast<double>(fan_in)));
  add_convolution(layer, layer.name(), outputs, inputs / groups, kernel, init);
  if (attributes.flag("bias")) add_parameter(layer, layer.name() + ".bias", {outputs}, init);
  return {};
}

Result<void> complete_batch_norm(v1::Layer& layer, const Attributes& attributes) {
  TROUPE_ASSIGN(const std::int64_t channels, attributes.size("channels"));
  add_batch_norm(layer, layer.name(), channels);
  return {};
}

Result<void> complete_layer_norm(v1::Layer& layer, const Attributes& attributes) {
  TROUPE_ASSIGN(const std::int64_t features, attributes.size("features"));
  add_layer_norm(layer, layer.name(), features);
  return {};
}

Result<void> complete_embedding(v1::Layer& layer, const Attributes& attributes) {
  TROUPE_ASSIGN(const std::int64_t rows, attributes.size("rows"));
  TROUPE_ASSIGN(const std::int64_t features, attributes.size("features"));
  add_parameter(layer, layer.name() + ".weight", {rows, features}, normal_init(1));
  return {};
}

using ParameterCompletion = std::function<Result<void>(v1::Layer&, const Attributes&)>;

}  // namespace

Result<void> complete_parameters(v1::Layer& layer, const std::string& where) {
  static const std::map<std::string, ParameterCompletion> completions = {
      {"linear", complete_linear},           {"conv2d", complete_convolution},
      {"batch_norm2d", complete_batch_norm}, {"layer_norm", complete_layer_norm},
      {"embedding", complete_embedding},     {"position_embedding", complete_embedding}};
  const auto found = completions.find(layer.kind());
  if (found == completions.end() || layer.parameters_size() != 0) return {};
  return found->second(layer, Attributes(layer, where));
}

}  // namespace troupe::mp
