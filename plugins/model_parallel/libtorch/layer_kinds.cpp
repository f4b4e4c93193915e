#include "libtorch/layer_kinds.hpp"

#include <utility>

#include "core/value_ref.hpp"

namespace troupe::mp::libtorch {
namespace {

std::string origin_of(const std::string& library) {
  return library.empty() ? "Troupe itself" : "the layer library \"" + library + "\"";
}

}  // namespace

Result<void> LayerKinds::add(const std::string& kind, Factory factory) {
  return add_from("", kind, std::move(factory));
}

Result<void> LayerKinds::add_from(const std::string& library, const std::string& kind,
                                  Factory factory) {
  const auto [entry, added] = kinds_.emplace(kind, Kind{std::move(factory), library});
  if (added) return {};
  return bad_input(
      "kind \"" + kind + "\"",
      "registered twice, by " + origin_of(entry->second.library) + " and by " + origin_of(library),
      "give one of them another name, or leave one library out of the job");
}

Result<std::unique_ptr<Layer>> LayerKinds::create(const LayerSetup& setup) const {
  const std::string where = "layer '" + setup.config().name() + "'";
  const std::string& kind = setup.config().kind();
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    std::string known;
    for (const auto& entry : kinds_) known += (known.empty() ? "" : ", ") + entry.first;
    return bad_input(where, "unknown kind '" + kind + "'",
                     "known kinds: " + known + "; others come from layer_libraries");
  }
  auto layer = found->second.factory(setup);
  if (layer == nullptr) return bad_input(where, "kind '" + kind + "' made no layer");
  if (layer->is_loss() != is_loss_kind(kind))
    return bad_input(where,
                     "kind '" + kind + (layer->is_loss() ? "' is a loss" : "' is not a loss"),
                     "kinds of losses, and no others, have names that begin with \"loss.\"");
  return layer;
}

}  // namespace troupe::mp::libtorch
