#include "app/event_log.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "app/paths.hpp"
#include "troupe/log.hpp"

namespace troupe {

EventLog::EventLog(std::filesystem::path directory) : directory_(std::move(directory)) {}

Result<std::filesystem::path> EventLog::directory() {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_TRY(make_directory(directory_));
  return directory_;
}

std::string quote_json(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

void EventLog::append(std::initializer_list<std::pair<const char*, std::string>> members) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string json = fmt::format("{{\"time\":{:.3f}", std::chrono::duration<double>(now).count());
  for (const auto& [name, value] : members)
    if (!value.empty()) json += fmt::format(",{}:{}", quote_json(name), quote_json(value));
  append(json + "}");
}

void EventLog::append(const std::string& json) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(opened_, true)) {
    auto created = make_directory(directory_);
    // A run describes itself only: what an earlier one left is replaced.
    if (created) file_.open(directory_ / "events.jsonl", std::ios::trunc);
    if (!file_.is_open())
      log_warning("events", "cannot write {}", (directory_ / "events.jsonl").string());
  }
  if (file_.is_open()) file_ << json << '\n' << std::flush;
}

}  // namespace troupe
