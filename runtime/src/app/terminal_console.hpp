#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "troupe/api.hpp"
#include "troupe/console.hpp"

namespace troupe {

/// One line of progress: a bar of `width` cells, per cent, text.
TROUPE_API std::string render_progress(double fraction, const std::string& text, int width);

/// The Console on `out`: redraws a bar in place on a terminal; elsewhere prints plain lines, of
/// progress at most one each `plain_interval` and the last. With `json` only `result` prints.
class TROUPE_API TerminalConsole : public Console {
 public:
  TerminalConsole(std::FILE* out, bool terminal, bool json,
                  std::chrono::milliseconds plain_interval = std::chrono::seconds(5));
  /// Leaves the cursor at the start of a line.
  ~TerminalConsole() override;

  void line(const std::string& text) override;
  void progress(double fraction, const std::string& text) override;
  void result(const std::string& json) override;

 private:
  using Clock = std::chrono::steady_clock;

  /// Makes room for a whole line where the bar is.
  void clear_bar();
  int terminal_columns() const;

  std::FILE* out_;
  bool terminal_;
  bool json_;
  std::chrono::milliseconds plain_interval_;
  std::mutex mutex_;
  std::string bar_;  ///< what is drawn now; empty: nothing
  bool printed_ = false;
  Clock::time_point last_{};
};

/// The console of this process's stdout.
TROUPE_API std::unique_ptr<Console> make_console(bool json);

}  // namespace troupe
