#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "troupe/api.hpp"

namespace troupe {

/// As long as it lives, SIGINT, SIGTERM and SIGHUP are blocked in this thread and those it starts,
/// and SIGPIPE is ignored. Those that the process was started to ignore (nohup, a background job of
/// a script) stay ignored. Must come before any other thread exists (also before plugins load:
/// libraries start threads), since a signal goes to any thread that has not blocked it and then
/// ends the process. Ends on the thread that began it, after its SignalWatchers.
class TROUPE_API BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_mask_;
  struct sigaction previous_pipe_;
};

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
