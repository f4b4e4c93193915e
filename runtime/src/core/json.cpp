#include "troupe/json.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";

/// Length of the UTF-8 sequence that `text` begins with; 0 if it begins with none. Overlong forms,
/// surrogates and what lies beyond U+10FFFF are none (RFC 3629, section 4).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2   ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = sequence_length(text);
    if (length == 0)
      quoted += replacement;
    else if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      quoted += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "\"";
}

std::string json_array(const std::vector<std::string>& values) {
  std::string array = "[";
  for (const std::string& value : values) {
    if (array.size() > 1) array += ", ";
    array += value;
  }
  return array + "]";
}

JsonObject& JsonObject::add_json(std::string_view name, std::string_view json) {
  if (!fields_.empty()) fields_ += ", ";
  fields_ += json_string(name) + ": ";
  fields_ += json;
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, double value) {
  return add_json(name, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

JsonObject& JsonObject::add(std::string_view name, std::uint64_t value) {
  return add_json(name, fmt::format("{}", value));
}

JsonObject& JsonObject::add(std::string_view name, std::string_view value) {
  return add_json(name, json_string(value));
}

}  // namespace troupe
