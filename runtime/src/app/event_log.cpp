#include "app/event_log.hpp"

#include <chrono>

#include <fmt/format.h>

#include "troupe/log.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_kept = 1000;

}  // namespace

JsonObject new_event(std::string_view name) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::chrono::duration<double> seconds = now;
  return JsonObject().add_json("time", fmt::format("{:.3f}", seconds.count())).add("event", name);
}

void EventLog::open(const std::filesystem::path& file) {
  std::lock_guard<std::mutex> lock(mutex_);
  opened_ = true;
  file_.open(file, std::ios::trunc);
  if (!file_.is_open()) log_warning("events", "cannot write {}", file.string());
  for (const std::string& json : kept_) file_ << json << '\n';
  file_.flush();
  kept_.clear();
}

void EventLog::append(const std::string& json) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (opened_)
    file_ << json << '\n' << std::flush;
  else if (kept_.size() < most_kept)
    kept_.push_back(json);
}

}  // namespace troupe
