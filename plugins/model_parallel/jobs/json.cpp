#include "jobs/json.hpp"

#include <cmath>

#include <fmt/format.h>

namespace troupe::mp {

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      quoted += c;
  }
  return quoted + "\"";
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

}  // namespace troupe::mp
