#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// Environment variables of a process.
using Environment = std::map<std::string, std::string>;

/// What matters of the machine this process runs on.
struct Machine {
  std::string cpu_model;
  std::set<std::string> cpu_flags;  ///< as /proc/cpuinfo names them
  unsigned cores = 1;               ///< that this process may run on
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_memory_bytes = 0;
};

TROUPE_API Machine read_machine();

/// Model and flags from the text of /proc/cpuinfo; cores and memory stay unset.
TROUPE_API Machine parse_cpuinfo(const std::string& text);

/// The widest vector instructions: "avx512", "avx2", "avx", "sse2", or "unknown".
TROUPE_API std::string instruction_set(const Machine& machine);

/// The OpenBLAS kernel set (value of OPENBLAS_CORETYPE) for this CPU; nothing where the flags do
/// not decide. OpenBLAS chooses by CPU model instead, knows no model newer than itself, and then
/// falls back to kernels for SSE, more than ten times slower; choosing by instruction set also
/// gives machines of different models the same kernels, and so the same bits.
TROUPE_API std::optional<std::string> blas_core_type(const Machine& machine);

/// This process's environment.
TROUPE_API Environment current_environment();

/// The environment of a worker process: `base`, overridden by each layer in turn, completed by
/// what BLAS, OpenMP and the memory allocator need where nothing is said. These variables are read
/// once, when the libraries load, so they must be there before the process starts.
TROUPE_API Environment worker_environment(Environment base, const std::vector<Environment>& layers,
                                          const Machine& machine);

/// What decides the bits of this process's floating-point results, as far as the runtime sees it.
TROUPE_API runtime::v1::NumericFingerprint numeric_fingerprint(const Machine& machine,
                                                               const Environment& environment);

}  // namespace troupe
