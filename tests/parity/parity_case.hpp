#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/safetensors.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp::test {

/// One training run that PyTorch and Troupe both do.
struct ParityCase {
  std::uint32_t depth = 18;
  std::uint32_t classes = 10;
  std::uint32_t image = 64;
  std::uint32_t batch = 4;
  std::uint32_t micro_batch = 4;
  std::uint32_t steps = 3;
  bool cross_entropy = false;
  v1::Sgd sgd;
  double clip = 0;
  std::vector<std::string> cuts;  ///< first layer of each stage but the first
};

/// A directory of its own, removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs a script of tests/parity with Debian's Python; throws with what to install when it cannot.
void run_python(const std::string& script, const std::vector<std::string>& arguments);

/// What PyTorch computes for the case, by the names reference.py documents.
SafetensorsFile pytorch_reference(const ParityCase& parity_case, const TemporaryDirectory& out);

/// What Troupe computes, under the names of one dtype of the reference, converted to double.
using Tensors = std::map<std::string, std::vector<double>>;
Tensors troupe_results(const ParityCase& parity_case, const SafetensorsFile& reference,
                       v1::Precision precision);

std::vector<double> as_doubles(const HostTensor& tensor);

/// Unwraps or throws.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}

}  // namespace troupe::mp::test
