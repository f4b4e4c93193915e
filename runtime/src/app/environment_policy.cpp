#include "app/environment_policy.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 12> allowed_prefixes = {
    "OMP_",  "GOMP_",   "KMP_",   "OPENBLAS_", "GOTO_", "MKL_",
    "DNNL_", "ONEDNN_", "TORCH_", "PYTORCH_",  "CUDA_", "TROUPE_JOB_"};
constexpr std::array<std::string_view, 5> refused_parts = {"PATH", "LIB", "PRELOAD", "PLUGIN",
                                                           "HOME"};

bool allowed(std::string_view name) {
  const bool known =
      std::any_of(allowed_prefixes.begin(), allowed_prefixes.end(),
                  [&](auto prefix) { return name.substr(0, prefix.size()) == prefix; });
  const bool names_files = std::any_of(refused_parts.begin(), refused_parts.end(), [&](auto part) {
    return name.find(part) != std::string_view::npos;
  });
  return known && !names_files && name.find('=') == std::string_view::npos;
}

}  // namespace

Result<void> check_requested_environment(const std::string& where, const Environment& environment) {
  for (const auto& entry : environment)
    if (!allowed(entry.first))
      return bad_input(where, "a job may not set " + entry.first + " here",
                       "set it in this machine's node file");
  return {};
}

}  // namespace troupe
