#pragma once

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/json.hpp"

namespace troupe {

/// An event of this kind, with its time ("time", seconds since 1970).
TROUPE_API JsonObject new_event(std::string_view name);

/// The events of a run. They are kept until there is a file for them: a run that cannot begin
/// leaves none. Thread-safe.
class TROUPE_API EventLog {
 public:
  /// Writes what was kept into `file`, truncating it, and from now on appends there. A failure to
  /// write is logged once, since events must not end a job.
  void open(const std::filesystem::path& file);

  /// Adds one JSON object as a line. Without a file only the first thousand are kept: the job of a
  /// C++ driver may never have one.
  void append(const std::string& json);
  void append(const JsonObject& event) { append(event.text()); }

 private:
  std::mutex mutex_;
  std::ofstream file_;
  bool opened_ = false;
  std::vector<std::string> kept_;
};

}  // namespace troupe
