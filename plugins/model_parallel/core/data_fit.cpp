#include "core/data_fit.hpp"

#include <string>

#include "core/loss_config.hpp"

namespace troupe::mp {
namespace {

/// Rows of the only matrix that a layer has for its result; 0 for other layers.
std::int64_t rows_of(const v1::Layer& layer) {
  for (const auto& parameter : layer.parameters())
    if (parameter.shape_size() == 2) return parameter.shape(0);
  return 0;
}

bool reads_inputs(const v1::Layer& layer) {
  return layer.reads_size() == 1 && layer.reads(0).field() == "inputs";
}

bool classifies(const v1::Layer& layer) {
  return layer.kind() == "linear" || layer.kind() == "resnet.head" || layer.kind() == "vit.head";
}

const v1::Layer* find_layer(const Plan& plan, const std::string& name) {
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers())
      if (layer.name() == name) return &layer;
  return nullptr;
}

Result<void> check_tokens(const Plan& plan, std::int64_t tokens, const std::string& where) {
  for (const auto& stage : plan.stages)
    for (const auto& layer : stage.config.layers()) {
      if (layer.kind() != "embedding" || !reads_inputs(layer)) continue;
      if (const std::int64_t rows = rows_of(layer); rows != 0 && rows < tokens)
        return bad_input(where,
                         "the data has " + std::to_string(tokens) + " tokens, layer \"" +
                             layer.name() + "\" has vectors for " + std::to_string(rows),
                         "give the model the vocabulary of the data's tokenizer");
    }
  return {};
}

Result<void> check_classes(const Plan& plan, std::int64_t classes, const std::string& where) {
  if (!plan.loss_stage) return {};
  const auto& config = plan.stages[*plan.loss_stage].config;
  if (!wants_class_indices(config.loss())) return {};
  const auto& loss = config.layers(config.layers_size() - 1);
  const v1::Layer* last = find_layer(plan, loss.reads(0).layer());
  if (last == nullptr || !classifies(*last)) return {};
  const std::int64_t rows = rows_of(*last);
  if (rows == 0 || rows >= classes) return {};
  return bad_input(where,
                   "the data has " + std::to_string(classes) + " classes, layer \"" + last->name() +
                       "\" tells " + std::to_string(rows) + " apart",
                   "give the model as many classes as the data has");
}

}  // namespace

Result<void> check_data_fits(const Plan& plan, const DataBounds& bounds, const std::string& path,
                             const Locate& locate) {
  if (bounds.tokens) TROUPE_TRY(check_tokens(plan, *bounds.tokens, locate(path)));
  if (bounds.classes) TROUPE_TRY(check_classes(plan, *bounds.classes, locate(path)));
  return {};
}

}  // namespace troupe::mp
