#include "common.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>

#include "app/paths.hpp"

namespace troupe::cli {
namespace {

/// Whether `where` is a position in a file: `...:LINE:COLUMN`.
bool is_position(const std::string& where) {
  const auto last = where.rfind(':');
  if (last == std::string::npos || last == 0) return false;
  const auto middle = where.rfind(':', last - 1);
  if (middle == std::string::npos) return false;
  auto number = [&](std::size_t begin, std::size_t end) {
    return begin < end && std::all_of(where.begin() + begin, where.begin() + end,
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  return number(middle + 1, last) && number(last + 1, where.size());
}

/// For errors that come without a way to mend them: what helps against their kind.
const char* how_to_mend(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_input: return "see docs/configuration.md for what is allowed";
    case ErrorCode::cluster: return "mend the node or its network, then run the job again";
    case ErrorCode::internal:
      return "the messages above it may tell more; see also `troupe doctor`";
    case ErrorCode::interrupted: return "run it again to start over";
  }
  return "";
}

}  // namespace

int report(const Error& error) {
  const char* prefix =
      error.code == ErrorCode::bad_input && is_position(error.where) ? "" : "troupe: ";
  Error complete = error;
  if (complete.hint.empty()) complete.hint = how_to_mend(error.code);
  std::fprintf(stderr, "%s%s\n", prefix, complete.to_string().c_str());
  return exit_code(error.code);
}

std::unique_ptr<PluginHost> make_plugin_host(const std::vector<std::string>& configured) {
  const std::vector<std::filesystem::path> directories(configured.begin(), configured.end());
  return std::make_unique<PluginHost>(plugin_directories(directories, this_binary()));
}

}  // namespace troupe::cli
