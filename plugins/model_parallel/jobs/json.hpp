#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::mp {

/// One flat JSON object on one line, built field by field. Doubles are written so that they read
/// back as the same value; those that are not finite, which JSON cannot say, as null.
class JsonObject {
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

/// With quotes; control characters, quotes and backslashes escaped.
std::string json_string(std::string_view text);

}  // namespace troupe::mp
