#include "app/environment_policy.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {
namespace {

/// What a job may choose: threads, kernels, devices and the like. Their values are numbers and
/// words; none names a file to load, read or write.
constexpr std::array<std::string_view, 37> allowed = {
    // OpenMP, and GNU's and LLVM's implementations of it
    "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS", "OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND",
    "OMP_SCHEDULE", "OMP_STACKSIZE", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME",
    // BLAS
    "GOTO_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_MAIN_FREE", "OPENBLAS_NUM_THREADS",
    "OPENBLAS_THREAD_TIMEOUT", "MKL_CBWR", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    // oneDNN, by both of its names
    "DNNL_CPU_ISA_HINTS", "DNNL_DEFAULT_FPMATH_MODE", "DNNL_MAX_CPU_ISA",
    "DNNL_PRIMITIVE_CACHE_CAPACITY", "DNNL_VERBOSE", "ONEDNN_CPU_ISA_HINTS",
    "ONEDNN_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
    "ONEDNN_VERBOSE",
    // GPUs
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES",
    "PYTORCH_CUDA_ALLOC_CONF"};

}  // namespace

Result<void> check_requested_environment(const std::string& where, const Environment& environment) {
  for (const auto& entry : environment)
    if (std::find(allowed.begin(), allowed.end(), entry.first) == allowed.end())
      return bad_input(where, "a job may not set " + entry.first + " here",
                       "set it in this machine's node file");
  return {};
}

}  // namespace troupe
