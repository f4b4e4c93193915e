#include "app/paths.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <system_error>

namespace troupe {

namespace fs = std::filesystem;

fs::path this_binary() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

fs::path worker_binary(const fs::path& configured) {
  if (!configured.empty()) return configured;
  if (const char* named = std::getenv("TROUPE_BINARY"); named != nullptr && *named != '\0')
    return named;
  // A C++ driver is another program; the binary lies beside it.
  std::error_code error;
  const fs::path beside = this_binary().parent_path() / "troupe";
  return fs::exists(beside, error) ? beside : this_binary();
}

std::vector<fs::path> plugin_directories(const std::vector<fs::path>& configured,
                                         const fs::path& binary) {
  if (!configured.empty()) return configured;
  std::vector<fs::path> directories;
  if (const char* list = std::getenv("TROUPE_PLUGIN_PATH"); list != nullptr) {
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) directories.emplace_back(part);
  }
  if (directories.empty())
    directories.push_back(
        (binary.parent_path().parent_path() / "lib" / "troupe" / "plugins").lexically_normal());
  return directories;
}

Result<void> check_creatable(const fs::path& directory) {
  const char* hint = "name another directory with --out";
  std::error_code error;
  fs::path existing = fs::absolute(directory, error);
  while (!fs::exists(existing, error) && existing.has_relative_path())
    existing = existing.parent_path();
  if (!fs::is_directory(existing, error))
    return bad_input(directory.string(), existing.string() + " is not a directory", hint);
  if (access(existing.c_str(), W_OK | X_OK) != 0)
    return bad_input(directory.string(),
                     "cannot write to " + existing.string() + ": " + std::strerror(errno), hint);
  return {};
}

Result<void> make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return bad_input(directory.string(), "cannot be created: " + error.message(),
                     "name another directory with --out");
  return check_creatable(directory);
}

}  // namespace troupe
