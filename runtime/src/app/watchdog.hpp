#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "troupe/api.hpp"

namespace troupe {

/// Ends the process with `_exit(code)` unless it is destroyed in time: no operation that hangs
/// during a shutdown can keep a process alive. `last_act` runs first, on the watchdog's thread.
class TROUPE_API Watchdog {
 public:
  Watchdog(std::chrono::milliseconds deadline, int code, std::function<void()> last_act = {});
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace troupe
