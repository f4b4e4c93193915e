#include "core/models/layer_list.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "core/layer_reads.hpp"
#include "core/models/linear.hpp"
#include "core/models/tied_parameters.hpp"
#include "core/value_ref.hpp"

namespace troupe::mp {

namespace {

constexpr double most_features = 2147483647.0;

std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// A layer's attribute as a count of features.
Result<std::int64_t> features(const v1::Layer& layer, const std::string& name,
                              const std::string& where) {
  const auto found = layer.attributes().find(name);
  if (found == layer.attributes().end())
    return bad_input(where + ".attributes",
                     "layer " + quoted(layer.name()) + " has neither parameters nor " + name,
                     "write the attributes in_features and out_features");
  const double value = found->second;
  if (!(value >= 1 && value <= most_features) || value != std::floor(value))
    return bad_input(where + ".attributes",
                     name + " of layer " + quoted(layer.name()) + " is not a positive integer");
  return static_cast<std::int64_t>(value);
}

Result<void> complete_linear(v1::Layer& layer, const std::string& where) {
  if (layer.parameters_size() != 0) return {};
  TROUPE_ASSIGN(const std::int64_t inputs, features(layer, "in_features", where));
  TROUPE_ASSIGN(const std::int64_t outputs, features(layer, "out_features", where));
  const auto bias = layer.attributes().find("bias");
  const bool with_bias = bias == layer.attributes().end() || bias->second != 0;
  add_linear_parameters(layer, layer.name(), inputs, outputs, with_bias);
  return {};
}

/// Checks tensors and collects their names, which are unique over the whole model.
Result<void> check_tensors(const google::protobuf::RepeatedPtrField<v1::Parameter>& tensors,
                           const std::string& where, std::set<std::string>& names) {
  for (int i = 0; i < tensors.size(); ++i) {
    const std::string field = where + "[" + std::to_string(i) + "]";
    const v1::Parameter& tensor = tensors[i];
    if (tensor.name().empty()) return bad_input(field + ".name", "a tensor without a name");
    if (!names.insert(tensor.name()).second)
      return bad_input(field + ".name", "second tensor called " + quoted(tensor.name()),
                       "names are unique in a model");
    if (!element_count({tensor.shape().begin(), tensor.shape().end()}))
      return bad_input(field + ".shape", "shape of " + quoted(tensor.name()) + " is not usable");
    if (!tensor.tied_to().empty()) continue;
    if (tensor.init().kind_case() == v1::Init::KIND_NOT_SET)
      return bad_input(field + ".init", "no initial value for " + quoted(tensor.name()),
                       "write constant, normal_std or uniform_bound");
  }
  return {};
}

}  // namespace

Result<std::vector<v1::Layer>> list_written_layers(const v1::LayerList& config) {
  if (config.layers_size() == 0) return bad_input("model.layers", "a model without layers");
  std::vector<v1::Layer> layers;
  OutputCounts outputs;
  std::set<std::string> tensor_names;
  for (int i = 0; i < config.layers_size(); ++i) {
    const std::string where = "model.layers.layers[" + std::to_string(i) + "]";
    v1::Layer layer = config.layers(i);
    if (layer.name().empty()) return bad_input(where + ".name", "a layer without a name");
    if (layer.name() == loss_layer)
      return bad_input(where + ".name", "the name 'loss' is taken by the loss of the job");
    if (outputs.count(layer.name()) != 0)
      return bad_input(where + ".name", "second layer called " + quoted(layer.name()),
                       "names are unique in a model");
    if (layer.kind().empty())
      return bad_input(where + ".kind", "layer " + quoted(layer.name()) + " without a kind");
    if (is_loss_kind(layer.kind()))
      return bad_input(where + ".kind",
                       "layer " + quoted(layer.name()) + " is a loss, which is not a written layer",
                       "set the loss of the job instead");
    TROUPE_TRY(check_reads(layer, where, outputs));
    if (layer.outputs() == 0) layer.set_outputs(1);
    if (layer.kind() == "linear") TROUPE_TRY(complete_linear(layer, where));
    TROUPE_TRY(check_tensors(layer.parameters(), where + ".parameters", tensor_names));
    TROUPE_TRY(check_tensors(layer.buffers(), where + ".buffers", tensor_names));
    outputs[layer.name()] = layer.outputs();
    layers.push_back(std::move(layer));
  }
  TROUPE_TRY(check_tied_parameters(layers));
  return layers;
}

}  // namespace troupe::mp
