#include "troupe/result.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return text;
}

}  // namespace

std::string Error::to_string() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += "; " + hint;
  return one_line(std::move(text));
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal: return 1;
    case ErrorCode::bad_input: return 2;
    case ErrorCode::cluster: return 3;
    case ErrorCode::interrupted: return 130;
  }
  return 1;
}

Error internal_error(std::string where, std::string what, std::string hint) {
  return {ErrorCode::internal, std::move(where), std::move(what), std::move(hint)};
}

Error bad_input(std::string where, std::string what, std::string hint) {
  return {ErrorCode::bad_input, std::move(where), std::move(what), std::move(hint)};
}

Error cluster_error(std::string where, std::string what, std::string hint) {
  return {ErrorCode::cluster, std::move(where), std::move(what), std::move(hint)};
}

}  // namespace troupe
