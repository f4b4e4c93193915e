#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/machine.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// File descriptors that a child inherits besides stdin, stdout and stderr.
inline constexpr int child_input_fd = 3;   ///< its first message; end of file: its parent is gone
inline constexpr int child_answer_fd = 4;  ///< one message to the parent; open until it exits

/// Fits the buffer of a pipe (64 KiB), so that no child that does not read can block its parent.
inline constexpr std::size_t most_child_input = 48 << 10;

/// The child processes of this process. One thread of its own forks, reads their answers and reaps
/// them; it lives as long as the object, because Linux sends a child its parent-death signal when
/// the forking *thread* ends.
///
/// No child outlives its parent: the end of its input pipe, which even kill -9 of the parent
/// closes, tells it to exit, and the kernel kills it besides. Each child leads a process group of
/// its own, so that Ctrl-C on the terminal reaches the parent only.
class TROUPE_API ChildProcesses {
 public:
  struct Command {
    std::vector<std::string> arguments;  ///< the first is the path of the binary
    Environment environment;
    std::string input;  ///< the first message on its input pipe; at most `most_child_input`
  };
  /// The child's answer, or why there will be none. Called once, on the thread of this object.
  using OnAnswer = std::function<void(pid_t pid, Result<std::string> answer)>;
  /// The child is gone and reaped: "exited with status 1", "killed by signal 9 (Killed)". The
  /// same thread.
  using OnExit = std::function<void(pid_t pid, const std::string& how)>;

  ChildProcesses();
  /// Kills what is left and reaps it.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Starts a child. Not from within a callback. Errors (bad_input): its input is too long.
  Result<pid_t> start(Command command, OnAnswer on_answer, OnExit on_exit);

  /// SIGTERM now, SIGKILL when the child still lives after `grace`, or after that of an earlier
  /// call, whichever is over first. False: no such child.
  bool terminate(pid_t pid, std::chrono::milliseconds grace);
  /// The same for all.
  void terminate_all(std::chrono::milliseconds grace);
  /// SIGKILL now. False: no such child.
  bool kill(pid_t pid);
  /// SIGKILL to all, without waiting for them.
  void kill_all();

  /// Waits until all children are reaped; false when the time is over first.
  bool wait_all(std::chrono::milliseconds timeout);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
