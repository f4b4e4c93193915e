#include "libtorch/layer.hpp"

#include <utility>

#include <c10/util/Exception.h>

namespace troupe::mp::libtorch {

LayerSetup::LayerSetup(const v1::Layer& config, const std::map<std::string, at::Tensor>& tensors)
    : config_(config) {
  const std::string prefix = config.name() + ".";
  for (const auto& [name, tensor] : tensors) {
    const bool prefixed = name.compare(0, prefix.size(), prefix) == 0;
    tensors_.emplace(prefixed ? name.substr(prefix.size()) : name, tensor);
  }
}

at::Tensor LayerSetup::tensor(const std::string& suffix) const {
  const auto found = tensors_.find(suffix);
  TORCH_CHECK(found != tensors_.end(), "a layer of kind '", config_.kind(),
              "' needs a parameter or buffer '", suffix, "'");
  return found->second;
}

double LayerSetup::attribute(const std::string& name, double fallback) const {
  const auto found = config_.attributes().find(name);
  return found == config_.attributes().end() ? fallback : found->second;
}

Result<void> LayerRegistry::add(const std::string& kind, Factory factory) {
  if (!factories_.emplace(kind, std::move(factory)).second)
    return internal_error("layer registry", "the kind '" + kind + "' is registered twice");
  return {};
}

Result<std::unique_ptr<Layer>> LayerRegistry::create(const LayerSetup& setup) const {
  const auto found = factories_.find(setup.config().kind());
  if (found != factories_.end()) return found->second(setup);
  std::string known;
  for (const auto& [kind, factory] : factories_) known += (known.empty() ? "" : ", ") + kind;
  return bad_input("layer '" + setup.config().name() + "'",
                   "unknown kind '" + setup.config().kind() + "'", "known kinds: " + known);
}

}  // namespace troupe::mp::libtorch
