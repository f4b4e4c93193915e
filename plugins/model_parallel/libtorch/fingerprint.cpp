#include "libtorch/fingerprint.hpp"

#include <dlfcn.h>

#include <string>

#include <ATen/Version.h>
#include <torch/csrc/api/include/torch/version.h>

namespace troupe::mp::libtorch {
namespace {

/// The text of a function of OpenBLAS; empty when another BLAS is loaded.
std::string ask_openblas(const char* function) {
  using Function = char* (*)();
  const auto found = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, function));
  return found != nullptr ? found() : "";
}

/// "OpenBLAS 0.3.21" of a text that goes on with how it was built.
std::string name_and_version(const std::string& text) {
  return text.substr(0, text.find(' ', text.find(' ') + 1));
}

}  // namespace

runtime::v1::NumericFingerprint process_fingerprint() {
  const auto kernel = ask_openblas("openblas_get_corename");
  const auto blas = name_and_version(ask_openblas("openblas_get_config"));
  runtime::v1::NumericFingerprint fingerprint;
  fingerprint.set_blas_kernel(kernel.empty() ? "unknown" : kernel);
  fingerprint.set_libraries("LibTorch " TORCH_VERSION ", " + at::get_mkldnn_version() + ", " +
                            (blas.empty() ? "unknown BLAS" : blas));
  return fingerprint;
}

}  // namespace troupe::mp::libtorch
