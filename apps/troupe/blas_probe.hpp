#pragma once

#include <string>

#include "app/machine.hpp"
#include "troupe/result.hpp"

namespace troupe::cli {

/// What matrix products of libblas.so.3 were measured to do.
struct BlasReport {
  std::string library;  ///< resolved path
  std::string kernel;   ///< OpenBLAS's own name of it; "unknown" for another BLAS
  double float32_gflops = 0;
  double float64_gflops = 0;
};

/// Measures in a child process with this environment: a BLAS reads its settings once, when it
/// loads, and a kernel that the CPU cannot run kills the process that tries it. Errors: no BLAS, a
/// wrong product, a killed child.
Result<BlasReport> probe_blas(const Environment& environment);

/// The child: measures, writes its report as lines to stdout, returns its exit code.
int run_blas_probe();

}  // namespace troupe::cli
