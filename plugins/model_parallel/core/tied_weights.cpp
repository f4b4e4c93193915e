#include "core/tied_weights.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "core/value_ref.hpp"

namespace troupe::mp {
namespace {

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

/// Where a parameter is.
struct Place {
  std::size_t layer = 0;
  const v1::Parameter* parameter = nullptr;
};

Result<void> resolve(v1::Parameter& parameter, std::size_t layer,
                     const std::map<std::string, Place>& earlier, const std::string& where) {
  const auto owner = earlier.find(parameter.tied_to());
  if (owner == earlier.end() || owner->second.layer == layer)
    return bad_input(where,
                     quoted(parameter.name()) + " is tied to " + quoted(parameter.tied_to()) +
                         ", which is no parameter of an earlier layer",
                     "write the full name of a parameter of a layer above it");
  const auto& owned = *owner->second.parameter;
  if (!owned.tied_to().empty())
    return bad_input(
        where,
        quoted(parameter.name()) + " is tied to " + quoted(owned.name()) + ", which is tied itself",
        "tie it to " + quoted(owned.tied_to()));
  const Shape shape(parameter.shape().begin(), parameter.shape().end());
  const Shape owned_shape(owned.shape().begin(), owned.shape().end());
  if (shape != owned_shape)
    return bad_input(where, quoted(parameter.name()) + " of shape " + to_string(shape) +
                                " is tied to " + quoted(owned.name()) + " of shape " +
                                to_string(owned_shape));
  *parameter.mutable_init() = owned.init();
  return {};
}

/// An owner and who shares its values.
struct Tie {
  std::size_t owner_stage = 0;
  std::vector<std::pair<std::size_t, std::string>> uses;  ///< stage and parameter, in layer order
};

v1::StageConfig::Address address_of(const PlannedStage& stage) {
  v1::StageConfig::Address address;
  address.set_node(stage.address.node);
  address.set_actor(stage.address.actor);
  return address;
}

Result<void> check_frozen(const PlannedStage& owner, const PlannedStage& user,
                          const std::string& use, const std::string& parameter,
                          const Locate& locate) {
  const auto number = user.config.stage();
  if (owner.config.frozen() || !user.config.frozen()) return {};
  return bad_input(locate("stages[" + std::to_string(number) + "].frozen"),
                   "stage " + std::to_string(number) + " is frozen, but its " + quoted(use) +
                       " shares the values of " + quoted(parameter) + ", which stage " +
                       std::to_string(owner.config.stage()) + " trains",
                   "freeze both stages or neither");
}

void connect(std::vector<PlannedStage>& stages, const std::string& parameter, const Tie& tie) {
  auto& owner = stages[tie.owner_stage];
  auto* weight = owner.config.add_tied_weights();
  weight->set_parameter(parameter);
  v1::StageConfig::TiedCopy* copy = nullptr;
  std::size_t copy_stage = tie.owner_stage;
  for (const auto& [stage, use] : tie.uses) {
    auto* listed = weight->add_uses();
    listed->set_parameter(use);
    if (stage == tie.owner_stage) continue;
    *listed->mutable_stage() = address_of(stages[stage]);
    if (stage != copy_stage) {
      copy = stages[stage].config.add_tied_copies();
      copy->set_owner(parameter);
      *copy->mutable_owner_stage() = address_of(owner);
      copy_stage = stage;
    }
    copy->add_uses(use);
  }
}

}  // namespace

Result<void> resolve_tied(std::vector<v1::Layer>& layers, const Locate& locate) {
  std::map<std::string, Place> known;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (int p = 0; p < layers[i].parameters_size(); ++p) {
      auto& parameter = *layers[i].mutable_parameters(p);
      const auto where = locate("model.layers.layers[" + std::to_string(i) + "].parameters[" +
                                std::to_string(p) + "].tied_to");
      if (!parameter.tied_to().empty()) TROUPE_TRY(resolve(parameter, i, known, where));
      known[parameter.name()] = {i, &parameter};
    }
    for (int b = 0; b < layers[i].buffers_size(); ++b)
      if (!layers[i].buffers(b).tied_to().empty())
        return bad_input(locate("model.layers.layers[" + std::to_string(i) + "].buffers[" +
                                std::to_string(b) + "].tied_to"),
                         quoted(layers[i].buffers(b).name()) + " is a buffer, which cannot be tied",
                         "tie parameters only");
  }
  return {};
}

Result<void> connect_tied(std::vector<PlannedStage>& stages, const Locate& locate) {
  std::map<std::string, std::size_t> stage_of;
  std::vector<std::string> order;  // of owners, by their first use
  std::map<std::string, Tie> ties;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const auto& layer : stages[s].config.layers())
      for (const auto& parameter : layer.parameters()) {
        stage_of[parameter.name()] = s;
        if (parameter.tied_to().empty()) continue;
        const auto [tie, added] = ties.try_emplace(parameter.tied_to());
        if (added) order.push_back(parameter.tied_to());
        tie->second.owner_stage = stage_of.at(parameter.tied_to());
        tie->second.uses.emplace_back(s, parameter.name());
      }
  for (const auto& parameter : order) {
    const auto& tie = ties.at(parameter);
    const auto& owner = stages[tie.owner_stage];
    for (const auto& [stage, use] : tie.uses)
      TROUPE_TRY(check_frozen(owner, stages[stage], use, parameter, locate));
    if (owner.config.train() && !owner.config.frozen()) connect(stages, parameter, tie);
  }
  return {};
}

}  // namespace troupe::mp
