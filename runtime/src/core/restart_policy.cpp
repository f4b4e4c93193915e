#include "core/restart_policy.hpp"

#include <algorithm>

namespace troupe {

std::optional<RestartPolicy::Duration> RestartPolicy::on_failure(Instant now) {
  while (!failures_.empty() && now - failures_.front() >= settings_.window) failures_.pop_front();
  if (static_cast<int>(failures_.size()) >= settings_.max_restarts) return std::nullopt;
  Duration delay = settings_.first_delay;
  for (std::size_t i = 0; i < failures_.size() && delay < settings_.max_delay; ++i) delay *= 2;
  failures_.push_back(now);
  return std::min(delay, settings_.max_delay);
}

}  // namespace troupe
