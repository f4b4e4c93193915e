#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Joins tensors along the first dimension, freeing each as soon as it is copied. All must agree in
/// type and in the other dimensions; at least one must be given.
Result<HostTensor> concatenate_rows(std::vector<HostTensor> parts);

/// The outputs of a run, micro-batch by micro-batch, as they come in.
class OutputGather {
 public:
  OutputGather() = default;
  explicit OutputGather(std::uint32_t micro_batches) : parts_(micro_batches) {}

  /// A second output of the same micro-batch, one that is out of range or absent, or one without
  /// rows, is an error.
  Result<void> add(std::uint32_t micro_batch, const Value& value);

  bool complete() const { return seen_ == parts_.size(); }

  /// In micro-batch order; for a complete set.
  std::vector<HostTensor> take();

 private:
  std::vector<std::optional<HostTensor>> parts_;
  std::size_t seen_ = 0;
};

}  // namespace troupe::mp
