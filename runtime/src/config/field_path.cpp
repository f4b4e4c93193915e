#include "config/field_path.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace troupe {

Result<FieldPath> parse_field_path(const std::string& text) {
  FieldPath path;
  std::size_t at = 0;
  while (true) {
    PathStep step;
    const auto name_end = std::min(text.find_first_of(".[", at), text.size());
    step.field = text.substr(at, name_end - at);
    if (step.field.empty())
      return bad_input("", fmt::format("\"{}\" is not a field path", text),
                       "write it like nodes[1].address");
    at = name_end;
    if (at < text.size() && text[at] == '[') {
      const auto close = text.find(']', at);
      if (close == std::string::npos || close == at + 1)
        return bad_input("", fmt::format("\"{}\" has a bracket without index", text),
                         "write it like nodes[1].address");
      step.index = text.substr(at + 1, close - at - 1);
      at = close + 1;
    }
    path.push_back(std::move(step));
    if (at == text.size()) return path;
    if (text[at] != '.')
      return bad_input("", fmt::format("\"{}\" is not a field path", text),
                       "a dot comes after a closing bracket");
    ++at;
  }
}

std::string to_string(const FieldPath& path) {
  std::string text;
  for (const auto& step : path) {
    if (!text.empty()) text += '.';
    text += step.field;
    if (step.index) text += "[" + *step.index + "]";
  }
  return text;
}

bool contains(const FieldPath& outer, const FieldPath& inner) {
  if (outer.size() > inner.size()) return false;
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (outer[i].field != inner[i].field) return false;
    const bool whole_list = !outer[i].index && i + 1 == outer.size();
    if (!whole_list && outer[i].index != inner[i].index) return false;
  }
  return true;
}

std::optional<int> index_number(const std::string& index) {
  int number = 0;
  const auto* end = index.data() + index.size();
  const auto [stop, error] = std::from_chars(index.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace troupe
