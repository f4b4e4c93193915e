#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/safetensors.hpp"
#include "parity/small_models.hpp"
#include "support/process.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"

namespace troupe::mp::test {

/// How one training run changes the weights.
struct Update {
  v1::Sgd sgd;
  double clip = 0;
};

/// Training runs that PyTorch and Troupe both do. They begin with the same weights and data, so
/// that PyTorch needs to compute the first gradients in float32, many times over, only once.
struct ParityRuns {
  ParityModel model = resnet_model(18);
  std::uint32_t batch = 4;
  std::uint32_t micro_batch = 4;
  std::uint32_t steps = 3;
  bool cross_entropy = false;
  bool float32 = true;  ///< whether PyTorch's own float32 error is wanted
  std::map<std::string, Update> updates;
};

/// What PyTorch computes for the runs, in files that live as long as the object. Their content is
/// documented in reference.py.
class Reference {
 public:
  explicit Reference(ParityRuns runs);

  const ParityRuns& runs() const { return runs_; }
  std::string file(const std::string& name) const;  ///< "start", "data" or that of an update
  SafetensorsFile open(const std::string& name) const;

 private:
  ParityRuns runs_;
  troupe::test::TemporaryDirectory directory_;
};

/// What Troupe computes in `steps` steps of an update, under the names of the reference and
/// converted to double. `cuts` are the first layers of the stages but the first; the loss has a
/// stage of its own, so that the logits are seen on their way to it.
using Tensors = std::map<std::string, std::vector<double>>;
Tensors troupe_results(const Reference& reference, const std::string& update,
                       const std::vector<std::string>& cuts, v1::Precision precision,
                       std::uint32_t steps);

std::vector<double> as_doubles(const HostTensor& tensor);

/// Largest difference of two tensors, relative to the largest element of the second; NaN counts as
/// worst.
double relative_error(const std::vector<double>& ours, const std::vector<double>& reference);

/// Unwraps or throws.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}

}  // namespace troupe::mp::test
