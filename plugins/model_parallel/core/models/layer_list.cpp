#include "core/models/layer_list.hpp"

#include <set>
#include <string>

#include "core/layer_reads.hpp"
#include "core/models/tied_parameters.hpp"
#include "core/models/written_kinds.hpp"
#include "core/value_ref.hpp"

namespace troupe::mp {

namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

Result<void> check_init(const v1::Parameter& tensor, const std::string& where) {
  if (tensor.init().kind_case() == v1::Init::KIND_NOT_SET)
    return bad_input(where, "no initial value for " + quoted(tensor.name()),
                     "write constant, normal_std, uniform_bound or truncated_normal");
  if (!tensor.init().has_truncated_normal()) return {};
  const auto& normal = tensor.init().truncated_normal();
  if (normal.std() > 0 && normal.bound() > 0) return {};
  return bad_input(where + ".truncated_normal",
                   "no distribution for the initial value of " + quoted(tensor.name()),
                   "write `std` and `bound`, both greater than 0");
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
    TROUPE_TRY(check_init(tensor, field + ".init"));
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
    TROUPE_TRY(complete_parameters(layer, where));
    TROUPE_TRY(check_tensors(layer.parameters(), where + ".parameters", tensor_names));
    TROUPE_TRY(check_tensors(layer.buffers(), where + ".buffers", tensor_names));
    outputs[layer.name()] = layer.outputs();
    layers.push_back(std::move(layer));
  }
  TROUPE_TRY(check_tied_parameters(layers));
  return layers;
}

}  // namespace troupe::mp
