#include "app/stop_request.hpp"

#include <utility>

namespace troupe {

void StopRequest::ask(Stop stop) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return;
    stop_ = std::move(stop);
  }
  changed_.notify_all();
}

Stop StopRequest::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return stop_.has_value(); });
  return *stop_;
}

std::optional<Stop> StopRequest::wait_for(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return stop_.has_value(); });
  return stop_;
}

}  // namespace troupe
