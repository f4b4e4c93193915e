#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

namespace troupe {

/// Why and how a process ends; the first reason counts.
struct Stop {
  std::string reason;
  int exit_code = 0;
  std::chrono::milliseconds deadline{0};
};

/// Where the main thread waits until any thread asks the process to end.
class StopRequest {
 public:
  void ask(Stop stop);
  Stop wait();
  /// Nothing when the time is over first.
  std::optional<Stop> wait_for(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Stop> stop_;
};

}  // namespace troupe
