#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/api.hpp"

namespace troupe {

/// One JSON object on one line, built field by field. Doubles are written so that they read back as
/// the same value; those that are not finite, which JSON cannot say, as null.
class TROUPE_API JsonObject {
 public:
  JsonObject& add(std::string_view name, double value);
  JsonObject& add(std::string_view name, std::uint64_t value);
  JsonObject& add(std::string_view name, std::string_view value);
  /// `json` is a JSON value already.
  JsonObject& add_json(std::string_view name, std::string_view json);

  std::string text() const { return "{" + fields_ + "}"; }

 private:
  std::string fields_;
};

/// With quotes; control characters, quotes and backslashes escaped, and what is not UTF-8 replaced
/// by U+FFFD, so that the result is JSON whatever the text holds.
TROUPE_API std::string json_string(std::string_view text);

/// `[a, b]` of JSON values.
TROUPE_API std::string json_array(const std::vector<std::string>& values);

}  // namespace troupe
