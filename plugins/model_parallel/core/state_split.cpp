#include "core/state_split.hpp"

#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/precision.hpp"

namespace troupe::mp {
namespace {

using Visitor =
    std::function<void(const v1::StageConfig& stage, const v1::Parameter& tensor, bool buffer)>;

void for_each_tensor(const Plan& plan, const Visitor& visit) {
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers()) {
      for (const auto& parameter : layer.parameters()) visit(stage.config, parameter, false);
      for (const auto& buffer : layer.buffers()) visit(stage.config, buffer, true);
    }
}

bool same_values(const TensorMap& tensors, const std::string& name, const HostTensor& other) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return false;
  const auto& tensor = found->second;
  return tensor.dtype == other.dtype && tensor.shape == other.shape &&
         tensor.data.size() == other.data.size() &&
         std::memcmp(tensor.data.data(), other.data.data(), other.data.size()) == 0;
}

constexpr const char* other_model =
    "it belongs to another model: change `model`, or give its weights";

}  // namespace

bool can_import(v1::DType from, v1::DType to) {
  return from == to || (is_floating(from) && is_floating(to)) ||
         (is_integer(from) && is_integer(to));
}

Error wrong_type(const std::string& where, const std::string& name, v1::DType from, v1::DType to) {
  return bad_input(
      where, "tensor " + name + " is " + to_string(from) + ", the model wants " + to_string(to),
      "floating-point types are converted to each other, and integers to each other");
}

v1::DType state_type(const v1::Parameter& tensor, v1::Precision precision) {
  if (tensor.integer()) return v1::DTYPE_INT64;
  return master_type(precision);
}

Result<std::map<std::uint32_t, std::vector<NamedTensor>>> split_state(const Plan& plan,
                                                                      const TensorMap& tensors,
                                                                      bool complete,
                                                                      const std::string& where) {
  std::map<std::uint32_t, std::vector<NamedTensor>> by_stage;
  TensorMap unknown = tensors;
  std::string missing;
  std::string misfit;
  std::optional<Error> mistyped;
  std::string untied;
  std::set<std::pair<std::uint32_t, std::string>> given;  // to stage, of the file
  for_each_tensor(
      plan, [&](const v1::StageConfig& stage, const v1::Parameter& tensor, bool buffer) {
        const bool tied = !tensor.tied_to().empty();
        const auto& source = tied ? tensor.tied_to() : tensor.name();
        // Files of other programs may have the values once more.
        const auto again = tied ? tensors.find(tensor.name()) : tensors.end();
        if (again != tensors.end()) {
          if (!same_values(tensors, source, again->second) && untied.empty())
            untied = tensor.name() + " is tied to " + source + ", but its values are others";
          unknown.erase(tensor.name());
        }
        if (!given.emplace(stage.stage(), source).second) return;
        const auto found = tensors.find(source);
        if (found == tensors.end()) {
          if (missing.empty()) missing = source;
          return;
        }
        const Shape shape(tensor.shape().begin(), tensor.shape().end());
        if (found->second.shape != shape && misfit.empty())
          misfit = tensor.name() + " has shape " + to_string(found->second.shape) +
                   ", the model wants " + to_string(shape);
        const auto from = found->second.dtype;
        const auto to = state_type(tensor, stage.precision());
        if (!mistyped && !can_import(from, to))
          mistyped = wrong_type(where, tensor.name(), from, to);
        by_stage[stage.stage()].push_back({tensor.name(), found->second, buffer});
        unknown.erase(source);
      });
  if (!unknown.empty())
    return bad_input(where, "the model has no tensor called " + unknown.begin()->first,
                     other_model);
  if (complete && !missing.empty())
    return bad_input(where, "the tensor " + missing + " is missing", other_model);
  if (!misfit.empty()) return bad_input(where, misfit, other_model);
  if (mistyped) return *mistyped;
  if (!untied.empty()) return bad_input(where, untied, other_model);
  return by_stage;
}

}  // namespace troupe::mp
