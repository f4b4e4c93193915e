#pragma once

#include <functional>
#include <thread>

#include "troupe/api.hpp"

namespace troupe {

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and those it starts, and ignores SIGPIPE. Must
/// come before any other thread exists (also before plugins load: libraries start threads), since
/// a signal goes to any thread that has not blocked it and then ends the process.
TROUPE_API void block_shutdown_signals();

/// A thread that waits for the signals blocked above and hands each to `handler`, on that thread.
class TROUPE_API SignalWatcher {
 public:
  explicit SignalWatcher(std::function<void(int signal)> handler);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  int signals_;
  int stop_;
  std::thread thread_;
};

}  // namespace troupe
