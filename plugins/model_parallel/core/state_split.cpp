#include "core/state_split.hpp"

#include <functional>

namespace troupe::mp {
namespace {

using Visitor = std::function<void(std::uint32_t stage, const v1::Parameter& tensor, bool buffer)>;

void for_each_tensor(const Plan& plan, const Visitor& visit) {
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers()) {
      for (const auto& parameter : layer.parameters())
        visit(stage.config.stage(), parameter, false);
      for (const auto& buffer : layer.buffers()) visit(stage.config.stage(), buffer, true);
    }
}

}  // namespace

Result<std::map<std::uint32_t, std::vector<NamedTensor>>> split_state(const Plan& plan,
                                                                      const TensorMap& tensors,
                                                                      bool complete,
                                                                      const std::string& where) {
  std::map<std::uint32_t, std::vector<NamedTensor>> by_stage;
  TensorMap unknown = tensors;
  std::string missing;
  std::string misfit;
  for_each_tensor(plan, [&](std::uint32_t stage, const v1::Parameter& tensor, bool buffer) {
    const auto found = tensors.find(tensor.name());
    if (found == tensors.end()) {
      if (missing.empty()) missing = tensor.name();
      return;
    }
    const Shape shape(tensor.shape().begin(), tensor.shape().end());
    if (found->second.shape != shape && misfit.empty())
      misfit = tensor.name() + " has shape " + to_string(found->second.shape) +
               ", the model wants " + to_string(shape);
    by_stage[stage].push_back({tensor.name(), found->second, buffer});
    unknown.erase(tensor.name());
  });
  if (!unknown.empty())
    return bad_input(where, "the model has no tensor called " + unknown.begin()->first);
  if (complete && !missing.empty())
    return bad_input(where, "the tensor " + missing + " is missing");
  if (!misfit.empty()) return bad_input(where, misfit);
  return by_stage;
}

}  // namespace troupe::mp
