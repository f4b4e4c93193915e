#include "core/layer_settings.hpp"

#include <algorithm>
#include <string>

#include "core/precision.hpp"
#include "core/value_ref.hpp"

namespace troupe::mp {
namespace {

Result<void> check_pattern(const std::string& pattern, const std::vector<v1::Layer>& layers,
                           const std::string& where) {
  const bool matched = std::any_of(layers.begin(), layers.end(), [&](const v1::Layer& layer) {
    return !is_loss_kind(layer.kind()) && matches_pattern(pattern, layer.name());
  });
  if (matched) return {};
  return bad_input(where, "no layer is called \"" + pattern + "\"",
                   "`*` stands for any characters, `?` for one; \"" + layers.front().name() +
                       "\" is the first layer");
}

/// Rounding must lose digits only: a wire type is the activation type or a narrower one.
Result<void> check_type(v1::DType wire, v1::Precision precision, const std::string& where) {
  const auto activations = activation_type(precision);
  const bool known = wire == v1::DTYPE_BFLOAT16 || wire == v1::DTYPE_FLOAT32;
  if (known && (wire == activations || element_size(wire) < element_size(activations))) return {};
  return bad_input(
      where, v1::DType_Name(wire) + " is no wire type for activations of " + to_string(activations),
      "DTYPE_BFLOAT16 is one for float32 and float64, DTYPE_FLOAT32 for float64");
}

}  // namespace

Result<std::vector<v1::StageConfig::LayerSetting>> layer_settings(
    const std::vector<v1::Layer>& layers, const LayerRules& rules, v1::Precision precision,
    const Locate& locate) {
  const auto path_of = [](const char* field, std::size_t i) {
    return field + ("[" + std::to_string(i)) + "].";
  };
  for (std::size_t i = 0; i < rules.recompute.size(); ++i)
    TROUPE_TRY(check_pattern(rules.recompute[i].layers(), layers,
                             locate(path_of("recompute", i) + "layers")));
  for (std::size_t i = 0; i < rules.wire.size(); ++i) {
    TROUPE_TRY(
        check_pattern(rules.wire[i].layers(), layers, locate(path_of("wire", i) + "layers")));
    TROUPE_TRY(check_type(rules.wire[i].dtype(), precision, locate(path_of("wire", i) + "dtype")));
  }
  std::vector<v1::StageConfig::LayerSetting> settings(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (is_loss_kind(layers[i].kind())) continue;
    const auto names_layer = [&](const auto& rule) {
      return matches_pattern(rule.layers(), layers[i].name());
    };
    settings[i].set_recompute(
        std::any_of(rules.recompute.begin(), rules.recompute.end(), names_layer));
    const auto wire = std::find_if(rules.wire.begin(), rules.wire.end(), names_layer);
    if (wire != rules.wire.end()) settings[i].set_wire(wire->dtype());
  }
  return settings;
}

}  // namespace troupe::mp
