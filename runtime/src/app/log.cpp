#include "troupe/log.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace troupe {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

class ProcessLog {
 public:
  ProcessLog() : logger_("troupe", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%H:%M:%S.%e %l %v");
    logger_.set_level(spdlog::level::info);
  }

  spdlog::logger& logger() { return logger_; }

  void set_node(const std::string& node) {
    std::lock_guard<std::mutex> lock(mutex_);
    node_ = node;
  }

  std::string node() {
    std::lock_guard<std::mutex> lock(mutex_);
    return node_;
  }

 private:
  spdlog::logger logger_;
  std::mutex mutex_;
  std::string node_ = "-";
};

/// Never destroyed: actors may still log while statics are being torn down.
ProcessLog& process_log() {
  static auto* log = new ProcessLog;
  return *log;
}

}  // namespace

void set_log_level(LogLevel level) { process_log().logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return process_log().logger().should_log(to_spdlog(level)); }

void set_log_node(const std::string& node) { process_log().set_node(node.empty() ? "-" : node); }

void log_line(LogLevel level, std::string_view component, std::string_view text) {
  auto line = fmt::format("{} {}: {}", process_log().node(), component, text);
  // One event is one line, whatever a peer or a library put into the text.
  std::replace(line.begin(), line.end(), '\n', ' ');
  process_log().logger().log(to_spdlog(level), std::string_view(line));
}

}  // namespace troupe
