#include "core/models/mlp.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "core/models/layer_builder.hpp"
#include "core/models/linear.hpp"

namespace troupe::mp {

namespace {

Error mlp_error(const std::string& field, std::string what, std::string hint) {
  return bad_input("model.mlp." + field, std::move(what), std::move(hint));
}

Result<void> check_mlp(const v1::Mlp& config) {
  if (config.in_features() == 0)
    return mlp_error("in_features", "no features", "write how many numbers a sample has");
  if (config.out_features() == 0)
    return mlp_error("out_features", "no features", "write how many numbers the result has");
  for (int i = 0; i < config.hidden_features_size(); ++i)
    if (config.hidden_features(i) == 0)
      return mlp_error("hidden_features[" + std::to_string(i) + "]",
                       "a hidden layer without features", "write at least 1");
  if (!(config.dropout() >= 0 && config.dropout() < 1))
    return mlp_error("dropout", "not a probability below 1", "write a number from 0 to below 1");
  return {};
}

const char* kind_of_activation(v1::Mlp::Activation activation) {
  switch (activation) {
    case v1::Mlp::ACTIVATION_TANH: return "tanh";
    case v1::Mlp::ACTIVATION_GELU: return "gelu";
    default: return "relu";
  }
}

}  // namespace

Result<std::vector<v1::Layer>> list_mlp_layers(const v1::Mlp& config) {
  TROUPE_TRY(check_mlp(config));
  std::vector<v1::Layer> layers = {make_layer("flatten", "flatten")};
  int index = 0;
  const auto add = [&](const char* kind) -> v1::Layer& {
    return layers.emplace_back(make_layer(std::to_string(index++), kind));
  };
  const auto add_linear = [&](std::int64_t inputs, std::int64_t outputs) {
    v1::Layer& layer = add("linear");
    add_linear_parameters(layer, layer.name(), inputs, outputs, true);
  };
  std::int64_t features = config.in_features();
  for (const std::uint32_t hidden : config.hidden_features()) {
    add_linear(features, hidden);
    add(kind_of_activation(config.activation()));
    set_attribute(add("dropout"), "rate", config.dropout());
    features = hidden;
  }
  add_linear(features, config.out_features());
  return layers;
}

}  // namespace troupe::mp
