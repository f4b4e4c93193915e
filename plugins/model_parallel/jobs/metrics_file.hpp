#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>

#include "actors/driver_messages.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// metrics.jsonl: one object a step, on disk before the next step begins. "counted" is the number
/// that "loss" is the mean over: samples, or targets that are not ignored.
class MetricsFile {
 public:
  /// Truncates an existing file.
  static Result<MetricsFile> create(const std::filesystem::path& path);

  Result<void> append(const StepOutcome& step);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace troupe::mp
