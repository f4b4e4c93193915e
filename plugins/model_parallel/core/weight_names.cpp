#include "core/weight_names.hpp"

#include <set>
#include <string>
#include <utility>

namespace troupe::mp {
namespace {

constexpr const char* gpt2_prefix = "transformer.";
constexpr const char* gpt2_token_embedding = "transformer.wte.weight";

std::set<std::string> names_of(const Plan& plan) {
  std::set<std::string> names;
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers()) {
      for (const auto& parameter : layer.parameters()) names.insert(parameter.name());
      for (const auto& buffer : layer.buffers()) names.insert(buffer.name());
    }
  return names;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_causal_mask(const std::string& name) {
  return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
}

}  // namespace

TensorMap to_plan_names(const Plan& plan, TensorMap tensors) {
  const auto known = names_of(plan);
  if (known.count(gpt2_token_embedding) == 0) return tensors;
  TensorMap renamed;
  for (auto& [name, tensor] : tensors) {
    if (known.count(name) == 0 && is_causal_mask(name)) continue;
    const std::string prefixed = gpt2_prefix + name;
    // A file that has both forms of a name is left for the check to refuse.
    const bool other_form =
        known.count(name) == 0 && known.count(prefixed) != 0 && tensors.count(prefixed) == 0;
    renamed.emplace(other_form ? prefixed : name, std::move(tensor));
  }
  return renamed;
}

}  // namespace troupe::mp
