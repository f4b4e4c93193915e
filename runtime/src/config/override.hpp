#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "config/field_path.hpp"
#include "config/plugin_message.hpp"
#include "plugin/host.hpp"

namespace troupe {

/// A `--set path=value`, taken apart.
struct Override {
  FieldPath path;
  std::string value;

  /// `--set path`: the `where` of errors about it.
  std::string where() const { return "--set " + to_string(path); }
};

Result<Override> parse_override(const std::string& text);

/// Writes a value into `message`. An index equal to the size of a list appends; naming a member
/// of a oneof switches it; a step into an Any unpacks its message and packs it again. Messages
/// are written as `{ text format }`, whole lists as `[a, b]`. `plugins` resolves Any types and may
/// be null where there are none. Errors are bad_input with `--set path` as `where`; `message` may
/// then be half changed.
Result<void> apply_override(const Override& change, PluginHost* plugins,
                            google::protobuf::Message& message);

}  // namespace troupe
