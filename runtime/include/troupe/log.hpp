#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "troupe/api.hpp"

namespace troupe {

enum class LogLevel { debug, info, warning, error };

/// One logger a process, behind the runtime's API so that plugins do not each bring a registry of
/// their own. Lines go to stderr as `HH:MM:SS.mmm LEVEL node component: text`. Thread-safe.
TROUPE_API void set_log_level(LogLevel level);
TROUPE_API bool log_enabled(LogLevel level);
/// Name of this process in each line: the node's name.
TROUPE_API void set_log_node(const std::string& node);
TROUPE_API void log_line(LogLevel level, std::string_view component, std::string_view text);

/// `log_debug("stage.1", "{} forward", key)`: formatted only when the level is enabled.
template <class... Ts>
void log_debug(std::string_view component, fmt::format_string<Ts...> format, Ts&&... args) {
  if (log_enabled(LogLevel::debug))
    log_line(LogLevel::debug, component, fmt::format(format, std::forward<Ts>(args)...));
}
template <class... Ts>
void log_info(std::string_view component, fmt::format_string<Ts...> format, Ts&&... args) {
  if (log_enabled(LogLevel::info))
    log_line(LogLevel::info, component, fmt::format(format, std::forward<Ts>(args)...));
}
template <class... Ts>
void log_warning(std::string_view component, fmt::format_string<Ts...> format, Ts&&... args) {
  if (log_enabled(LogLevel::warning))
    log_line(LogLevel::warning, component, fmt::format(format, std::forward<Ts>(args)...));
}
template <class... Ts>
void log_error(std::string_view component, fmt::format_string<Ts...> format, Ts&&... args) {
  log_line(LogLevel::error, component, fmt::format(format, std::forward<Ts>(args)...));
}

}  // namespace troupe
