#include "config/source.hpp"

#include <algorithm>
#include <optional>

#include <google/protobuf/any.pb.h>

namespace troupe {
namespace {

namespace pb = google::protobuf;
using Tree = pb::TextFormat::ParseInfoTree;

/// The index under which the parser kept a field; it keeps map entries in the order of the file,
/// which is lost afterwards, so that a map is known by its first entry only.
int tree_index(const pb::FieldDescriptor& field, const PathStep& step) {
  if (!field.is_repeated()) return -1;
  if (field.is_map() || !step.index) return 0;
  return index_number(*step.index).value_or(0);
}

/// A list written as `[a, b, c]` has one position for all its elements: that of an earlier one
/// then stands for those behind it.
std::optional<pb::TextFormat::ParseLocation> nearest_location(const Tree& tree,
                                                              const pb::FieldDescriptor& field,
                                                              int index) {
  const bool written = !field.message_type() || tree.GetTreeForNested(&field, index);
  const int last = written ? std::min(index, 0) : index;
  for (int i = index; i >= last; --i) {
    const auto location = tree.GetLocation(&field, i);
    if (location.line >= 0) return location;
  }
  return std::nullopt;
}

}  // namespace

std::string TextConfigSource::locate(const std::string& path) const {
  const auto parsed = parse_field_path(path);
  if (!parsed) return name_;
  for (auto set = sets_.rbegin(); set != sets_.rend(); ++set) {
    if (contains(*set, *parsed)) return "--set " + to_string(*set);
  }
  std::string where = name_;
  const pb::Descriptor* type = &type_;
  const Tree* tree = &tree_;
  FieldPath walked;
  for (const auto& step : *parsed) {
    walked.push_back(step);
    const auto* field = type ? type->FindFieldByName(step.field) : nullptr;
    if (!field || !tree) break;
    const int index = tree_index(*field, step);
    const auto location = nearest_location(*tree, *field, index);
    if (!location) return set_inside(walked).value_or(where);
    where = name_ + ":" + text_.describe(text_.offset(location->line, location->column));
    if (!field->message_type() || field->is_map()) break;
    type = field->message_type();
    if (type == pb::Any::descriptor()) type = plugin_type_;
    tree = tree->GetTreeForNested(field, index);
  }
  return where;
}

std::optional<std::string> TextConfigSource::set_inside(const FieldPath& path) const {
  for (auto set = sets_.rbegin(); set != sets_.rend(); ++set) {
    if (contains(path, *set)) return "--set " + to_string(*set);
  }
  return std::nullopt;
}

std::string TextConfigSource::locate_plugin_field(const std::string& path) const {
  return locate(path.empty() ? "plugin" : "plugin." + path);
}

}  // namespace troupe
