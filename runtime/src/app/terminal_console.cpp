#include "app/terminal_console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe {

Console::~Console() = default;

std::string render_progress(double fraction, const std::string& text, int width) {
  const double bounded = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const int filled = static_cast<int>(bounded * width);
  return fmt::format("[{}{}] {:3.0f}%  {}", std::string(filled, '='),
                     std::string(width - filled, ' '), std::floor(bounded * 100), text);
}

TerminalConsole::TerminalConsole(std::FILE* out, bool terminal, bool json,
                                 std::chrono::milliseconds plain_interval)
    : out_(out), terminal_(terminal), json_(json), plain_interval_(plain_interval) {}

TerminalConsole::~TerminalConsole() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (bar_.empty()) return;
  std::fputc('\n', out_);
  std::fflush(out_);
}

void TerminalConsole::line(const std::string& text) {
  if (json_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string bar = bar_;
  clear_bar();
  std::fprintf(out_, "%s\n", text.c_str());
  if (!bar.empty()) {
    std::fputs(bar.c_str(), out_);
    bar_ = bar;
  }
  std::fflush(out_);
}

void TerminalConsole::progress(double fraction, const std::string& text) {
  if (json_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto now = Clock::now();
  const bool last = fraction >= 1;
  if (terminal_) {
    clear_bar();
    bar_ = render_progress(fraction, text, 24);
    const auto columns = static_cast<std::size_t>(std::max(20, terminal_columns() - 1));
    if (bar_.size() > columns) bar_.resize(columns);
    std::fputs(bar_.c_str(), out_);
    if (last) {
      std::fputc('\n', out_);
      bar_.clear();
    }
  } else {
    if (printed_ && !last && now - last_ < plain_interval_) return;
    printed_ = true;
    last_ = now;
    std::fprintf(out_, "%3.0f%%  %s\n", std::floor(std::clamp(fraction, 0.0, 1.0) * 100),
                 text.c_str());
  }
  std::fflush(out_);
}

void TerminalConsole::result(const std::string& json) {
  if (!json_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  std::fprintf(out_, "%s\n", json.c_str());
  std::fflush(out_);
}

void TerminalConsole::clear_bar() {
  if (bar_.empty()) return;
  // Spaces instead of an escape sequence: every terminal knows them.
  std::fprintf(out_, "\r%s\r", std::string(bar_.size(), ' ').c_str());
  bar_.clear();
}

int TerminalConsole::terminal_columns() const {
  winsize size{};
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::unique_ptr<Console> make_console(bool json) {
  return std::make_unique<TerminalConsole>(stdout, isatty(STDOUT_FILENO) == 1, json);
}

}  // namespace troupe
