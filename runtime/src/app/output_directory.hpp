#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe {

/// The directory that a run writes into, and the guard of what earlier runs left there. Its file
/// `.lock` is locked (flock) as long as a run writes, and names the results of the last run, one a
/// line. Not thread-safe.
class TROUPE_API OutputDirectory {
 public:
  explicit OutputDirectory(std::filesystem::path path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Whether a run could write here; changes nothing. Errors (bad_input): it cannot be created or
  /// written to, another run writes here now.
  Result<void> check() const;

  /// Takes it, until this object ends: creates and locks it, renames the results of earlier runs
  /// (those that the last one named, and those of the same names as ours), removes what they left
  /// half written. Errors (bad_input).
  Result<void> take(const OutputFiles& files);

 private:
  Result<void> lock();
  Result<void> put_aside(const std::string& name,
                         const std::vector<std::filesystem::path>& inputs) const;

  std::filesystem::path path_;
  int lock_ = -1;
};

/// Where the result of an earlier run goes: `weights.previous.safetensors` for
/// `weights.safetensors`; with `number` from 2 on, `weights.previous.2.safetensors`.
TROUPE_API std::filesystem::path previous_name(const std::filesystem::path& file, int number = 1);

}  // namespace troupe
