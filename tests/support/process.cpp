#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

extern "C" char** environ;

namespace troupe::test {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

int unlinked_file() {
  char name[] = "/tmp/troupe-stderr-XXXXXX";
  const int fd = check(mkostemp(name, O_CLOEXEC), "mkostemp");
  unlink(name);
  return fd;
}

struct Stat {
  pid_t parent = 0;
  char state = 'X';
};

/// From /proc/PID/stat: `PID (NAME) STATE PARENT ...`; the name may hold anything.
std::optional<Stat> read_stat(const std::string& pid) {
  const std::string text = read_text("/proc/" + pid + "/stat");
  const auto close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(close + 1));
  Stat stat;
  rest >> stat.state >> stat.parent;
  return stat;
}

/// A zombie is gone: it waits for a parent that is not ours to hurry.
bool is_gone(pid_t pid) {
  auto stat = read_stat(std::to_string(pid));
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos)
      processes.push_back(std::stoi(name));
  }
  return processes;
}

}  // namespace

Process::Process(std::vector<std::string> arguments, const Environment& environment) {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC), "pipe2");
  stderr_ = unlinked_file();
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (environment.count(text.substr(0, text.find('='))) == 0) entries.push_back(text);
  }
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& entry : entries) envp.push_back(entry.data());
  envp.push_back(nullptr);
  pid_ = check(fork(), "fork");
  if (pid_ == 0) {
    setpgid(0, 0);
    // As if started from a terminal, however the tests were.
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(stderr_, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  stdout_ = ends[0];
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stdout_(std::exchange(other.stdout_, -1)),
      stderr_(std::exchange(other.stderr_, -1)),
      buffer_(std::move(other.buffer_)),
      exit_code_(other.exit_code_) {}

Process::~Process() {
  if (pid_ < 0) return;
  if (!exit_code_) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(stdout_);
  close(stderr_);
}

void Process::signal(int number) const { ::kill(pid_, number); }

std::optional<std::string> Process::read_line(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd descriptor{stdout_, POLLIN, 0};
    if (poll(&descriptor, 1, milliseconds_until(deadline)) <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = read(stdout_, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::optional<std::string> Process::read_line_with(const std::string& prefix) {
  while (auto line = read_line())
    if (line->compare(0, prefix.size(), prefix) == 0) return line;
  return std::nullopt;
}

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  if (exit_code_) return exit_code_;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  check(handle, "pidfd_open");
  pollfd descriptor{handle, POLLIN, 0};
  const int ready = poll(&descriptor, 1, static_cast<int>(timeout.count()));
  close(handle);
  if (ready <= 0) return std::nullopt;
  int status = 0;
  check(waitpid(pid_, &status, 0), "waitpid");
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

std::string Process::error_output() const {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = pread(stderr_, bytes, sizeof bytes, text.size())) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  return text;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : all_processes()) {
    auto stat = read_stat(std::to_string(pid));
    if (stat && stat->parent == parent && stat->state != 'Z') children.push_back(pid);
  }
  return children;
}

std::vector<pid_t> processes_with(const std::string& environment_entry) {
  const std::string entry = '\0' + environment_entry + '\0';
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    const std::string environment = '\0' + read_text("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(entry) != std::string::npos) found.push_back(pid);
  }
  return found;
}

std::optional<pid_t> worker_of(pid_t parent, const std::string& node) {
  const std::string argument = std::string("--node") + '\0' + node + '\0';
  for (pid_t child : children_of(parent))
    if (read_text("/proc/" + std::to_string(child) + "/cmdline").find(argument) !=
        std::string::npos)
      return child;
  return std::nullopt;
}

bool all_gone(const std::vector<pid_t>& pids, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  // They are not our children, so there is nothing to wait on; ask until the time is over.
  while (!std::all_of(pids.begin(), pids.end(), is_gone)) {
    if (Clock::now() >= deadline) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

TemporaryDirectory::TemporaryDirectory() {
  char name[] = "/tmp/troupe-test-XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name) << content;
  return (path_ / name).string();
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  // Unlike iterators this does not throw where a process ends while its files in /proc are read.
  text << stream.rdbuf();
  return text.str();
}

}  // namespace troupe::test
