#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "config/field_path.hpp"
#include "config/text.hpp"
#include "troupe/plugin.hpp"

namespace troupe {

/// Where each field of a loaded config comes from: a position in the file, or a `--set`.
/// Immutable once loading has ended, and then safe to read from any thread.
class TextConfigSource final : public ConfigSource {
 public:
  TextConfigSource(std::string name, TextPositions text, const google::protobuf::Descriptor& type)
      : name_(std::move(name)), text_(std::move(text)), type_(type) {}

  const TextPositions& text() const { return text_; }
  google::protobuf::TextFormat::ParseInfoTree& tree() { return tree_; }

  /// From now on paths below `plugin` are looked up in this message type.
  void set_plugin_type(const google::protobuf::Descriptor& type) { plugin_type_ = &type; }
  /// A `--set` has written this path.
  void add_set(FieldPath path) { sets_.push_back(std::move(path)); }

  /// `file:line:column` or `--set path` of a field of the whole config ("nodes[1].address",
  /// "plugin.batch_size"); of the nearest enclosing field when it is not written.
  std::string locate(const std::string& path) const;

  std::string locate_plugin_field(const std::string& path) const override;

 private:
  /// The `--set` that has made something at or inside `path`, which the file does not have.
  std::optional<std::string> set_inside(const FieldPath& path) const;

  std::string name_;
  TextPositions text_;
  const google::protobuf::Descriptor& type_;
  const google::protobuf::Descriptor* plugin_type_ = nullptr;
  google::protobuf::TextFormat::ParseInfoTree tree_;
  std::vector<FieldPath> sets_;
};

}  // namespace troupe
