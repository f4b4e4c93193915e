#include "core/numerics.hpp"

#include <map>
#include <set>

namespace troupe::mp {
namespace {

using Fingerprint = runtime::v1::NumericFingerprint;

struct Property {
  const char* name;
  const std::string& (Fingerprint::*value)() const;
};

constexpr Property properties[] = {{"CPU model", &Fingerprint::cpu_model},
                                   {"instruction set", &Fingerprint::instruction_set},
                                   {"BLAS kernel", &Fingerprint::blas_kernel},
                                   {"libraries", &Fingerprint::libraries}};

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

/// "CPU model is "X" on a and b, "Y" on c"; empty when all have the same.
std::string difference(const Property& property, const std::vector<const StageNumerics*>& stages) {
  std::map<std::string, std::set<std::string>> nodes;  // by value
  for (const auto* stage : stages)
    nodes[(stage->fingerprint.*property.value)()].insert(stage->node);
  if (nodes.size() < 2) return {};
  std::string text;
  for (const auto& [value, names] : nodes)
    text += (text.empty() ? "\"" : ", \"") + value + "\" on " + join(names);
  return property.name + (" is " + text);
}

}  // namespace

Fingerprint merge(const Fingerprint& node, const Fingerprint& executor) {
  Fingerprint merged = executor;
  merged.set_cpu_model(node.cpu_model());
  merged.set_instruction_set(node.instruction_set());
  return merged;
}

std::string numeric_differences(const std::vector<StageNumerics>& stages) {
  std::map<std::string, std::vector<const StageNumerics*>> kinds;
  for (const auto& stage : stages)
    kinds[stage.device.substr(0, stage.device.find(':'))].push_back(&stage);
  std::string text;
  for (const auto& [kind, of_kind] : kinds)
    for (const auto& property : properties) {
      const auto found = difference(property, of_kind);
      if (!found.empty()) text += (text.empty() ? "" : ", ") + found;
    }
  return text;
}

}  // namespace troupe::mp
