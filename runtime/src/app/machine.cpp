#include "app/machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

extern "C" char** environ;

namespace troupe {
namespace {

std::string read_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
}

/// `MemTotal:       24 kB` -> bytes; 0 when the key is absent.
std::uint64_t meminfo_bytes(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.compare(0, key.size() + 1, key + ":") == 0)
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  return 0;
}

bool has_all(const Machine& machine, std::initializer_list<const char*> flags) {
  return std::all_of(flags.begin(), flags.end(),
                     [&](const char* flag) { return machine.cpu_flags.count(flag) != 0; });
}

std::string value_or(const Environment& environment, const std::string& name,
                     const std::string& otherwise) {
  auto found = environment.find(name);
  return found == environment.end() ? otherwise : found->second;
}

/// A training step allocates and frees the same large buffers again and again. glibc returns freed
/// memory to the kernel at once where a buffer of more than 32 MiB was asked for or the top of a
/// heap becomes free, and every thread but the first works in small heaps which are unmapped whole:
/// much of a step would go into page faults. One heap that keeps what it has got, in huge pages
/// where the kernel has them, is faulted in once and quickly (measured, see docs/performance.md).
/// It also bounds memory: it never exceeds the peak of a step by much, while several heaps fragment
/// apart.
void tune_allocator(Environment& environment) {
  std::string& tunables = environment["GLIBC_TUNABLES"];
  // Whoever tunes the allocator has the whole say.
  if (tunables.find("glibc.malloc.") != std::string::npos) return;
  tunables += tunables.empty() ? "" : ":";
  tunables += "glibc.malloc.hugetlb=1";
  environment.emplace("MALLOC_ARENA_MAX", "1");
  environment.emplace("MALLOC_MMAP_MAX_", "0");
  environment.emplace("MALLOC_TRIM_THRESHOLD_", std::to_string(std::uint64_t{1} << 40));
  // The heap grows by this much at least: by whole huge pages.
  environment.emplace("MALLOC_TOP_PAD_", std::to_string(std::uint64_t{64} << 20));
}

}  // namespace

Machine read_machine() {
  Machine machine = parse_cpuinfo(read_file("/proc/cpuinfo"));
  machine.cores = usable_cores();
  const std::string memory = read_file("/proc/meminfo");
  machine.memory_bytes = meminfo_bytes(memory, "MemTotal");
  machine.available_memory_bytes = meminfo_bytes(memory, "MemAvailable");
  return machine;
}

Machine parse_cpuinfo(const std::string& text) {
  Machine machine;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const auto start = line.find_first_not_of(" \t", colon + 1);
    const std::string value = start == std::string::npos ? "" : line.substr(start);
    if (key == "model name" && machine.cpu_model.empty()) {
      machine.cpu_model = value;
    } else if ((key == "flags" || key == "Features") && machine.cpu_flags.empty()) {
      std::istringstream words(value);
      machine.cpu_flags.insert(std::istream_iterator<std::string>(words), {});
    }
  }
  return machine;
}

std::string instruction_set(const Machine& machine) {
  if (has_all(machine, {"avx512f", "avx512dq", "avx512bw", "avx512vl"})) return "avx512";
  if (has_all(machine, {"avx2", "fma"})) return "avx2";
  for (const char* flag : {"avx", "sse2"})
    if (machine.cpu_flags.count(flag) != 0) return flag;
  return "unknown";
}

std::optional<std::string> blas_core_type(const Machine& machine) {
  const std::string widest = instruction_set(machine);
  if (widest == "avx512") return "SkylakeX";
  if (widest == "avx2") return "Haswell";
  return std::nullopt;
}

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

Environment worker_environment(Environment base, const std::vector<Environment>& layers,
                               const Machine& machine) {
  for (const Environment& layer : layers)
    for (const auto& [name, value] : layer) base[name] = value;
  if (auto core_type = blas_core_type(machine)) base.emplace("OPENBLAS_CORETYPE", *core_type);
  // Without this OpenBLAS takes all cores, whatever its caller is limited to.
  if (auto threads = base.find("OMP_NUM_THREADS"); threads != base.end())
    base.emplace("OPENBLAS_NUM_THREADS", threads->second);
  tune_allocator(base);
  return base;
}

runtime::v1::NumericFingerprint numeric_fingerprint(const Machine& machine,
                                                    const Environment& environment) {
  runtime::v1::NumericFingerprint fingerprint;
  fingerprint.set_cpu_model(machine.cpu_model);
  fingerprint.set_instruction_set(instruction_set(machine));
  fingerprint.set_blas_kernel(value_or(environment, "OPENBLAS_CORETYPE", ""));
  fingerprint.set_threads(static_cast<std::uint32_t>(
      std::strtoul(value_or(environment, "OMP_NUM_THREADS", std::to_string(machine.cores)).c_str(),
                   nullptr, 10)));
  return fingerprint;
}

}  // namespace troupe
