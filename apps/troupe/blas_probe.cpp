#include "blas_probe.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "app/paths.hpp"

namespace troupe::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int checked_size = 61;  // odd: every kernel's edges take part
constexpr int measured_size = 768;
constexpr std::chrono::milliseconds measured_time{300};
constexpr std::chrono::seconds probe_timeout{30};

/// The Fortran interface that every BLAS has: C = alpha * A * B + beta * C, column by column.
template <class T>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*,
                      const T*, const int*, const T*, const int*, const T*, T*, const int*);

template <class T>
void multiply(Gemm<T> gemm, int n, const std::vector<T>& a, const std::vector<T>& b,
              std::vector<T>& c) {
  const T one = 1;
  const T zero = 0;
  gemm("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
}

template <class T>
std::vector<T> random_matrix(int n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> values(-1, 1);
  std::vector<T> matrix(static_cast<std::size_t>(n) * n);
  for (T& value : matrix) value = values(generator);
  return matrix;
}

/// Against a product summed in double by three plain loops.
template <class T>
bool is_right(Gemm<T> gemm, T tolerance) {
  const int n = checked_size;
  const auto a = random_matrix<T>(n, 1);
  const auto b = random_matrix<T>(n, 2);
  std::vector<T> c(a.size());
  multiply(gemm, n, a, b, c);
  for (int column = 0; column < n; ++column)
    for (int row = 0; row < n; ++row) {
      double sum = 0;
      for (int k = 0; k < n; ++k)
        sum += static_cast<double>(a[row + k * n]) * static_cast<double>(b[k + column * n]);
      if (!(std::abs(sum - static_cast<double>(c[row + column * n])) <= tolerance)) return false;
    }
  return true;
}

/// The best of several products, in 10^9 operations a second.
template <class T>
double measure(Gemm<T> gemm) {
  const int n = measured_size;
  const auto a = random_matrix<T>(n, 3);
  const auto b = random_matrix<T>(n, 4);
  std::vector<T> c(a.size());
  double best = 0;
  for (const auto end = Clock::now() + measured_time; Clock::now() < end;) {
    const auto start = Clock::now();
    multiply(gemm, n, a, b, c);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * n * n * n / seconds / 1e9);
  }
  return best;
}

std::string library_of(void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "unknown";
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : path.string();
}

/// Reads `fd` to its end; false when the time is over first.
bool read_all(int fd, std::string& text, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  char buffer[1024];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd descriptor{fd, POLLIN, 0};
    if (poll(&descriptor, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

struct ProbeOutcome {
  std::string output;
  int status = 0;
  bool in_time = true;
};

Result<ProbeOutcome> run_probe_process(const Environment& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return internal_error("BLAS", "no pipe for the measurement");
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> pointers;
  for (std::string& entry : entries) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  std::string binary = this_binary().string();
  std::string arguments[] = {binary, "doctor", "--blas-probe"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  // Whatever this process blocks: Ctrl-C ends the measurement too.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, binary.c_str(), &actions, &attributes, argv, pointers.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProbeOutcome outcome;
  if (failed == 0) {
    outcome.in_time = read_all(ends[0], outcome.output, probe_timeout);
    if (!outcome.in_time) kill(pid, SIGKILL);
    waitpid(pid, &outcome.status, 0);
  }
  close(ends[0]);
  if (failed != 0) return internal_error("BLAS", std::strerror(failed));
  return outcome;
}

}  // namespace

int run_blas_probe() {
  void* library = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("error no libblas.so.3\n");
    return 1;
  }
  void* single = dlsym(library, "sgemm_");
  void* twice = dlsym(library, "dgemm_");
  if (single == nullptr || twice == nullptr) {
    std::printf("error libblas.so.3 has no sgemm_ and dgemm_\n");
    return 1;
  }
  const auto sgemm = reinterpret_cast<Gemm<float>>(single);
  const auto dgemm = reinterpret_cast<Gemm<double>>(twice);
  std::printf("library %s\n", library_of(twice).c_str());
  using CoreName = char* (*)();
  auto core_name = reinterpret_cast<CoreName>(dlsym(library, "openblas_get_corename"));
  std::printf("kernel %s\n", core_name != nullptr ? core_name() : "unknown");
  std::fflush(stdout);
  if (!is_right<float>(sgemm, 1e-3f) || !is_right<double>(dgemm, 1e-11)) {
    std::printf("error its matrix products are wrong\n");
    return 1;
  }
  std::printf("float32 %.2f\nfloat64 %.2f\n", measure(sgemm), measure(dgemm));
  return 0;
}

Result<BlasReport> probe_blas(const Environment& environment) {
  TROUPE_ASSIGN(const ProbeOutcome outcome, run_probe_process(environment));
  BlasReport report;
  std::istringstream lines(outcome.output);
  std::string failure;
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "library") report.library = value;
    if (key == "kernel") report.kernel = value;
    if (key == "float32") report.float32_gflops = std::strtod(value.c_str(), nullptr);
    if (key == "float64") report.float64_gflops = std::strtod(value.c_str(), nullptr);
    if (key == "error") failure = value;
  }
  if (!failure.empty()) return bad_input("BLAS", failure, "install libopenblas0-openmp");
  if (!outcome.in_time) return bad_input("BLAS", "the measurement hangs", "unset OPENBLAS_*");
  if (WIFSIGNALED(outcome.status))
    return bad_input("BLAS",
                     fmt::format("its kernel dies with {}", strsignal(WTERMSIG(outcome.status))),
                     "unset OPENBLAS_CORETYPE, or set it to a kernel this CPU can run");
  if (report.float64_gflops <= 0) return internal_error("BLAS", "the measurement said nothing");
  return report;
}

}  // namespace troupe::cli
