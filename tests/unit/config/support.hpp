#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/loader.hpp"

namespace troupe::testing {

/// A config file that exists as long as the object, alone in a directory of its own. Errors about
/// it are compared with `FILE` in place of its path.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text);
  ~ConfigFile();

  const std::filesystem::path& path() const { return path_; }

  Result<LoadedJob> load_job(const std::vector<std::string>& sets = {}) const;
  Result<runtime::v1::Node> load_node(const std::vector<std::string>& sets = {}) const;

  /// The error text of loading it as a job; empty when it loads.
  std::string job_error(const std::vector<std::string>& sets = {}) const;
  std::string node_error(const std::vector<std::string>& sets = {}) const;

  /// The text with this file's path replaced by `FILE`.
  std::string shorten(std::string text) const;

 private:
  std::filesystem::path directory_;
  std::filesystem::path path_;
};

/// A job file around the fields of the test plugin's message; these begin on line 4.
std::string job_with(const std::string& plugin_fields);

/// Fields of a plugin message that loads.
inline constexpr const char* good_fields = "count: 7\npart { name: \"p\" }\nalpha {}\n";

/// The error's text, or nothing.
template <class T>
std::string error_text(const Result<T>& result) {
  return result ? "" : result.error().to_string();
}

/// The plugin's message in one line of text format.
std::string plugin_text(const LoadedJob& job);

}  // namespace troupe::testing
