#include "config/suggest.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {
namespace {

/// Levenshtein distance, in a single row.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggest(const std::string& name, const std::vector<std::string>& known,
                    const std::string& label) {
  const std::size_t near = std::max<std::size_t>(2, name.size() / 3);
  const std::string* best = nullptr;
  std::size_t best_distance = near + 1;
  for (const auto& candidate : known) {
    const auto distance = edit_distance(name, candidate);
    // Replacing every letter is no likeness.
    if (distance < best_distance && distance < candidate.size()) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best) return fmt::format("did you mean \"{}\"?", *best);
  if (known.empty()) return fmt::format("{}: none", label);
  return fmt::format("{}: {}", label, fmt::join(known, ", "));
}

std::vector<std::string> field_names(const google::protobuf::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    // Unspecified is what an absent field says; it is no choice.
    if (type.value(i)->number() != 0) names.push_back(type.value(i)->name());
  }
  return names;
}

}  // namespace troupe
