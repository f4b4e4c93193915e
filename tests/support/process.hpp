#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

/// A child process of a test: its stdout is read line by line, its stderr kept. Killed and reaped
/// by the destructor. Waits are bounded by generous limits: they guard against hangs and measure
/// nothing.
class Process {
 public:
  using Environment = std::map<std::string, std::string>;
  static constexpr std::chrono::seconds patience{60};

  /// Starts `arguments[0]`; `environment` is added to the test's own.
  explicit Process(std::vector<std::string> arguments, const Environment& environment = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;

  /// The next line of stdout without its end; nothing at the end of the output or of the time.
  std::optional<std::string> read_line(std::chrono::milliseconds timeout = patience);
  /// Reads lines until one begins with `prefix`.
  std::optional<std::string> read_line_with(const std::string& prefix);

  /// The exit code, 128 + n for a death by signal n; nothing when it still runs after `timeout`.
  std::optional<int> wait(std::chrono::milliseconds timeout = patience);

  /// What it has written to stderr so far.
  std::string error_output() const;

 private:
  pid_t pid_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;  ///< an unlinked file
  std::string buffer_;
  std::optional<int> exit_code_;
};

/// The children of a process, by /proc; of those, the worker of node `node` when named.
std::vector<pid_t> children_of(pid_t parent);
std::optional<pid_t> worker_of(pid_t parent, const std::string& node);

/// The processes of this user whose environment has this entry, NAME=VALUE.
std::vector<pid_t> processes_with(const std::string& environment_entry);

/// Whether all these are gone, or become so in time.
bool all_gone(const std::vector<pid_t>& pids,
              std::chrono::milliseconds timeout = Process::patience);

/// A directory that is removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into it; returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// What a file holds; empty when there is none.
std::string read_text(const std::filesystem::path& file);

}  // namespace troupe::test
