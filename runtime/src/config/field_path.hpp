#pragma once

#include <optional>
#include <string>
#include <vector>

#include "troupe/result.hpp"

namespace troupe {

/// One name of a field path, with what stands in brackets behind it: the index of a list or the
/// key of a map.
struct PathStep {
  std::string field;
  std::optional<std::string> index;

  friend bool operator==(const PathStep& a, const PathStep& b) {
    return a.field == b.field && a.index == b.index;
  }
};

/// `plugin.stages[1].first_layer`, taken apart.
using FieldPath = std::vector<PathStep>;

/// Errors have no `where`: the caller knows what the path was written for.
Result<FieldPath> parse_field_path(const std::string& text);

std::string to_string(const FieldPath& path);

/// Whether `inner` is `outer` itself or lies inside what `outer` names.
bool contains(const FieldPath& outer, const FieldPath& inner);

/// The number of an index, if it is one.
std::optional<int> index_number(const std::string& index);

}  // namespace troupe
