#include "core/layer_cut.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::mp {
namespace {

std::string group_of(const std::string& name) { return name.substr(0, name.find('.')); }

/// Number of characters to insert, delete or replace (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

/// The few names of layers and groups that are most like `name`.
std::string near_names(const std::vector<v1::Layer>& layers, const std::string& name) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& candidate) {
    if (std::find(names.begin(), names.end(), candidate) == names.end()) names.push_back(candidate);
  };
  for (const auto& layer : layers) {
    add(group_of(layer.name()));
    add(layer.name());
  }
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return edit_distance(a, name) < edit_distance(b, name);
  });
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i)
    text += (i == 0 ? "\"" : ", \"") + names[i] + "\"";
  return text;
}

}  // namespace

Result<std::size_t> find_first_layer(const std::vector<v1::Layer>& layers, const std::string& name,
                                     const std::string& where) {
  const auto prefix = name + ".";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& candidate = layers[i].name();
    if (candidate == name || candidate.compare(0, prefix.size(), prefix) == 0) return i;
  }
  return bad_input(where, "the model has no layer or group \"" + name + "\"",
                   "names like it are " + near_names(layers, name));
}

Result<std::vector<std::size_t>> cut_layers(
    const std::vector<v1::Layer>& layers, const std::vector<v1::Stage>& stages,
    const std::function<std::string(const std::string&)>& locate) {
  std::vector<std::size_t> first_layers;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto where = locate("stages[" + std::to_string(s) + "].first_layer");
    const auto& name = stages[s].first_layer();
    if (name.empty()) {
      if (s != 0)
        return bad_input(where, "stage " + std::to_string(s) + " does not say where it begins",
                         "set first_layer to the name of a layer or group");
      first_layers.push_back(0);
      continue;
    }
    TROUPE_ASSIGN(const std::size_t first, find_first_layer(layers, name, where));
    if (s == 0 && first != 0)
      return bad_input(where, "the first stage cannot begin with \"" + layers[first].name() + "\"",
                       "leave first_layer out: it begins with \"" + layers[0].name() + "\"");
    if (s != 0 && first == first_layers.back())
      return bad_input(where, "stage " + std::to_string(s - 1) +
                                  " would have no layers: this one begins "
                                  "with \"" +
                                  layers[first].name() + "\" too");
    if (s != 0 && first < first_layers.back())
      return bad_input(where,
                       "\"" + layers[first].name() + "\" comes before \"" +
                           layers[first_layers.back()].name() + "\", where stage " +
                           std::to_string(s - 1) + " begins",
                       "list the stages in the order of the layers");
    first_layers.push_back(first);
  }
  return first_layers;
}

}  // namespace troupe::mp
