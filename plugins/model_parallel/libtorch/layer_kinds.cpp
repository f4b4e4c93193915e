#include "libtorch/layer_kinds.hpp"

#include <utility>

namespace troupe::mp::libtorch {

Result<void> LayerKinds::add(const std::string& kind, Factory factory) {
  if (!factories_.emplace(kind, std::move(factory)).second)
    return internal_error("layer registry", "the kind '" + kind + "' is registered twice");
  return {};
}

Result<std::unique_ptr<Layer>> LayerKinds::create(const LayerSetup& setup) const {
  const auto found = factories_.find(setup.config().kind());
  if (found != factories_.end()) return found->second(setup);
  std::string known;
  for (const auto& [kind, factory] : factories_) known += (known.empty() ? "" : ", ") + kind;
  return bad_input("layer '" + setup.config().name() + "'",
                   "unknown kind '" + setup.config().kind() + "'", "known kinds: " + known);
}

}  // namespace troupe::mp::libtorch
