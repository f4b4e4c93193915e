#pragma once

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>

#include "troupe/result.hpp"

namespace troupe {

/// A JSON string literal.
std::string quote_json(const std::string& text);

/// The output directory of a job and events.jsonl in it, both created when first needed.
/// Thread-safe.
class EventLog {
 public:
  explicit EventLog(std::filesystem::path directory);

  /// The directory, created. Errors (bad_input).
  Result<std::filesystem::path> directory();

  /// Appends one line; a failure to write is logged once, since events must not end a job.
  void append(const std::string& json);

  /// Appends an object with these string members, none of them empty, and the time ("time",
  /// seconds since 1970).
  void append(std::initializer_list<std::pair<const char*, std::string>> members);

 private:
  std::filesystem::path directory_;
  std::mutex mutex_;
  std::ofstream file_;
  bool opened_ = false;
};

}  // namespace troupe
