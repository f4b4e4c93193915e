#include "app/child_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "app/pipe.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

std::string system_text(int error) { return std::strerror(error); }

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Everything the child needs between fork and exec, prepared before the fork: other threads may
/// hold any lock at that moment, so only async-signal-safe calls are allowed in between.
struct ExecPlan {
  std::vector<std::string> argument_strings;
  std::vector<std::string> environment_strings;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int input;
  int answer;
  pid_t parent;
};

void close_from(int first) {
  if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
  for (int fd = first; fd < 65536; ++fd) close(fd);
}

[[noreturn]] void become_child(const ExecPlan& plan) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the call above.
  if (getppid() != plan.parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // By this one children are stopped, also where their parent was started to ignore it.
  signal(SIGTERM, SIG_DFL);
  // Out of the way of the fixed numbers first: either end may already be one of them.
  const int input = fcntl(plan.input, F_DUPFD, 10);
  const int answer = fcntl(plan.answer, F_DUPFD, 10);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  // Results on stdout are the parent's alone.
  dup2(STDERR_FILENO, STDOUT_FILENO);
  dup2(input, child_input_fd);
  dup2(answer, child_answer_fd);
  close_from(child_answer_fd + 1);
  execve(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  _exit(127);
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) return "could not be executed";
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace

class ChildProcesses::Impl {
 public:
  Impl() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { loop(); }) {}

  ~Impl() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      kill_all_locked();
    }
    wake();
    thread_.join();
  }

  Result<pid_t> start(Command command, OnAnswer on_answer, OnExit on_exit) {
    if (command.input.size() > most_child_input)
      return bad_input("child process",
                       fmt::format("its first message has {} bytes, more than {}",
                                   command.input.size(), most_child_input),
                       "use shorter names and fewer plugin directories");
    Start request{std::move(command), std::move(on_answer), std::move(on_exit), {}};
    auto result = request.result.get_future();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return internal_error("child process", "this process is shutting down");
      starts_.push_back(std::move(request));
    }
    wake();
    return result.get();
  }

  bool terminate(pid_t pid, std::chrono::milliseconds grace) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto child = children_.find(pid);
      if (child == children_.end() || child->second.reaped) return false;
      terminate_locked(pid, child->second, grace);
    }
    wake();
    return true;
  }

  void terminate_all(std::chrono::milliseconds grace) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto& [pid, child] : children_)
        if (!child.reaped) terminate_locked(pid, child, grace);
    }
    wake();
  }

  bool kill(pid_t pid) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto child = children_.find(pid);
    if (child == children_.end() || child->second.reaped) return false;
    ::kill(-pid, SIGKILL);
    return true;
  }

  void kill_all() {
    std::lock_guard<std::mutex> lock(mutex_);
    kill_all_locked();
  }

  bool wait_all(std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    return reaped_.wait_for(lock, timeout, [&] { return children_.empty(); });
  }

 private:
  struct Start {
    Command command;
    OnAnswer on_answer;
    OnExit on_exit;
    std::promise<Result<pid_t>> result;
  };

  struct Child {
    Descriptor lifeline;  ///< the write end of its input
    Descriptor answer;
    std::string received;
    OnAnswer on_answer;  ///< empty once called
    OnExit on_exit;
    std::optional<Clock::time_point> kill_at;
    bool reaped = false;  ///< its pid may be another process's by now
  };

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] auto written = write(wake_.get(), &one, sizeof one);
  }

  static void terminate_locked(pid_t pid, Child& child, std::chrono::milliseconds grace) {
    const auto deadline = Clock::now() + grace;
    child.kill_at = std::min(child.kill_at.value_or(deadline), deadline);
    ::kill(-pid, SIGTERM);
  }

  void kill_all_locked() {
    for (const auto& [pid, child] : children_)
      if (!child.reaped) ::kill(-pid, SIGKILL);
  }

  void loop() {
    // Writing to a child that is gone is an error value, whatever the process does with the signal.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    for (;;) {
      std::vector<Start> starts;
      std::vector<pollfd> descriptors{{wake_.get(), POLLIN, 0}};
      std::vector<pid_t> pids;
      int timeout = -1;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (stopping_ && children_.empty() && starts_.empty()) return;
        starts.swap(starts_);
        timeout = kill_overdue_locked();
        for (const auto& [pid, child] : children_) {
          descriptors.push_back({child.answer.get(), POLLIN, 0});
          pids.push_back(pid);
        }
      }
      if (!starts.empty()) {
        for (Start& request : starts) fork_child(std::move(request));
        continue;
      }
      if (poll(descriptors.data(), descriptors.size(), timeout) < 0) continue;
      std::uint64_t count;
      [[maybe_unused]] auto drained = read(wake_.get(), &count, sizeof count);
      for (std::size_t i = 0; i < pids.size(); ++i)
        if (descriptors[i + 1].revents != 0) read_answer(pids[i]);
    }
  }

  /// Kills those whose grace is over; returns the milliseconds until the next is, or -1.
  int kill_overdue_locked() {
    const auto now = Clock::now();
    std::optional<Clock::time_point> next;
    for (auto& [pid, child] : children_) {
      if (!child.kill_at || child.reaped) continue;
      if (*child.kill_at <= now) {
        ::kill(-pid, SIGKILL);
        child.kill_at.reset();
      } else if (!next || *child.kill_at < *next) {
        next = child.kill_at;
      }
    }
    if (!next) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*next - now);
    return static_cast<int>(std::min<std::int64_t>(left.count() + 1, 60'000));
  }

  void fork_child(Start request) {
    auto started = try_fork(request);
    request.result.set_value(std::move(started));
  }

  Result<pid_t> try_fork(Start& request) {
    TROUPE_ASSIGN(Pipe input, make_pipe());
    TROUPE_ASSIGN(Pipe answer, make_pipe());
    ExecPlan plan;
    plan.argument_strings = request.command.arguments;
    for (const auto& [name, value] : request.command.environment)
      plan.environment_strings.push_back(name + "=" + value);
    plan.arguments = pointers(plan.argument_strings);
    plan.environment = pointers(plan.environment_strings);
    plan.input = input.read.get();
    plan.answer = answer.write.get();
    plan.parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return internal_error("child process", "no fork: " + system_text(errno));
    if (pid == 0) become_child(plan);
    // Both sides do this: whoever is first, the group exists before anyone signals it.
    setpgid(pid, pid);
    // Only the child holds these now: if it is gone, the write below fails instead of waiting.
    input.read = Descriptor();
    answer.write = Descriptor();
    // A child that is already gone is seen when its answer pipe ends.
    (void)write_pipe_message(input.write.get(), request.command.input);
    Child child;
    child.lifeline = std::move(input.write);
    child.answer = std::move(answer.read);
    child.on_answer = std::move(request.on_answer);
    child.on_exit = std::move(request.on_exit);
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) ::kill(-pid, SIGKILL);
    children_.emplace(pid, std::move(child));
    return pid;
  }

  void read_answer(pid_t pid) {
    Child& child = children_.at(pid);  // only this thread inserts and erases
    char buffer[4096];
    const ssize_t count = read(child.answer.get(), buffer, sizeof buffer);
    if (count < 0) return;
    if (count == 0) return reap(pid);
    if (!child.on_answer) return;  // it has said all it may say
    child.received.append(buffer, static_cast<std::size_t>(count));
    if (auto message = first_pipe_message(child.received))
      std::exchange(child.on_answer, nullptr)(pid, std::move(*message));
  }

  /// The answer pipe closes when the process ends (a child keeps it open until then), so the wait
  /// is short; the kill covers a child that closed it and lives on.
  void reap(pid_t pid) {
    int status = 0;
    Child child;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      child = std::move(children_.at(pid));
      // From here on nobody signals it: its pid may soon be another process's.
      children_.at(pid).reaped = true;
    }
    if (waitpid(pid, &status, WNOHANG) == 0) {
      ::kill(-pid, SIGKILL);
      // Not under the lock: a process in the kernel's hands may take its time.
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
    }
    const std::string how = describe_status(status);
    if (child.on_answer)
      child.on_answer(
          pid, internal_error(fmt::format("child process {}", pid), how, "see its messages above"));
    if (child.on_exit) child.on_exit(pid, how);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      children_.erase(pid);
    }
    reaped_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable reaped_;
  std::vector<Start> starts_;
  std::map<pid_t, Child> children_;
  bool stopping_ = false;
  Descriptor wake_;
  std::thread thread_;
};

ChildProcesses::ChildProcesses() : impl_(std::make_unique<Impl>()) {}
ChildProcesses::~ChildProcesses() = default;

Result<pid_t> ChildProcesses::start(Command command, OnAnswer on_answer, OnExit on_exit) {
  return impl_->start(std::move(command), std::move(on_answer), std::move(on_exit));
}
bool ChildProcesses::terminate(pid_t pid, std::chrono::milliseconds grace) {
  return impl_->terminate(pid, grace);
}
void ChildProcesses::terminate_all(std::chrono::milliseconds grace) { impl_->terminate_all(grace); }
bool ChildProcesses::kill(pid_t pid) { return impl_->kill(pid); }
void ChildProcesses::kill_all() { impl_->kill_all(); }
bool ChildProcesses::wait_all(std::chrono::milliseconds timeout) {
  return impl_->wait_all(timeout);
}

}  // namespace troupe
