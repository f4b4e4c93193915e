#include "core/models/tied_parameters.hpp"

#include <map>

namespace troupe::mp {

namespace {

using Owners = std::map<std::string, const v1::Parameter*>;

std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

Shape shape_of(const v1::Parameter& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

/// `earlier`: the parameters of the layers above.
Result<void> check_tied(const v1::Parameter& tied, const std::string& where,
                        const Owners& earlier) {
  const auto found = earlier.find(tied.tied_to());
  if (found == earlier.end())
    return bad_input(where + ".tied_to",
                     "no earlier layer has the parameter " + in_quotes(tied.tied_to()) + " that " +
                         in_quotes(tied.name()) + " is tied to",
                     "name a parameter of a layer above it");
  const v1::Parameter& owner = *found->second;
  if (!owner.tied_to().empty())
    return bad_input(where + ".tied_to",
                     in_quotes(tied.name()) + " is tied to " + in_quotes(owner.name()) +
                         ", which is tied itself",
                     "tie it to " + in_quotes(owner.tied_to()));
  if (shape_of(owner) != shape_of(tied))
    return bad_input(where + ".shape",
                     in_quotes(tied.name()) + " has shape " + to_string(shape_of(tied)) + ", " +
                         in_quotes(owner.name()) + ", which it is tied to, " +
                         to_string(shape_of(owner)),
                     "tied parameters have one shape");
  if (tied.integer() != owner.integer())
    return bad_input(where + ".integer",
                     in_quotes(tied.name()) + " and " + in_quotes(owner.name()) + " differ in type",
                     "tied parameters have one type");
  if (tied.has_init())
    return bad_input(where + ".init", in_quotes(tied.name()) + " is tied and has an initial value",
                     "leave it out: the owner has one");
  return {};
}

}  // namespace

Result<void> check_tied_parameters(const std::vector<v1::Layer>& layers) {
  Owners earlier;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const v1::Layer& layer = layers[i];
    const std::string where = "model.layers.layers[" + std::to_string(i) + "]";
    for (int p = 0; p < layer.parameters_size(); ++p) {
      if (layer.parameters(p).tied_to().empty()) continue;
      TROUPE_TRY(check_tied(layer.parameters(p), where + ".parameters[" + std::to_string(p) + "]",
                            earlier));
    }
    for (int b = 0; b < layer.buffers_size(); ++b)
      if (!layer.buffers(b).tied_to().empty())
        return bad_input(where + ".buffers[" + std::to_string(b) + "].tied_to",
                         "the buffer " + in_quotes(layer.buffers(b).name()) + " is tied",
                         "only parameters can be tied");
    for (const auto& parameter : layer.parameters()) earlier.emplace(parameter.name(), &parameter);
  }
  return {};
}

}  // namespace troupe::mp
