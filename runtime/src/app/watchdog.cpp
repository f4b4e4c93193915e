#include "app/watchdog.hpp"

#include <unistd.h>

#include "troupe/log.hpp"

namespace troupe {

Watchdog::Watchdog(std::chrono::milliseconds deadline, int code, std::function<void()> last_act)
    : thread_([this, deadline, code, last_act = std::move(last_act)] {
        std::unique_lock<std::mutex> lock(mutex_);
        if (changed_.wait_for(lock, deadline, [this] { return done_; })) return;
        log_warning("shutdown", "not done after {} ms: ending the process", deadline.count());
        if (last_act) last_act();
        _exit(code);
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

}  // namespace troupe
