#include "core/output_gather.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::mp {

Result<HostTensor> concatenate_rows(std::vector<HostTensor> parts) {
  if (parts.size() == 1) return parts.front();
  HostTensor whole;
  whole.dtype = parts.front().dtype;
  whole.shape = parts.front().shape;
  whole.shape[0] = 0;
  std::size_t bytes = 0;
  for (const auto& part : parts) {
    if (part.dtype != whole.dtype || part.shape.size() != whole.shape.size() ||
        !std::equal(part.shape.begin() + 1, part.shape.end(), whole.shape.begin() + 1))
      return bad_input("outputs",
                       "micro-batches differ in type or shape: " + to_string(parts.front().shape) +
                           " and " + to_string(part.shape));
    whole.shape[0] += part.shape[0];
    bytes += part.data.size();
  }
  whole.data = Blob::uninitialized(bytes);
  auto* to = whole.data.mutable_data();
  for (auto& part : parts) {
    const Blob bytes = std::exchange(part.data, {});
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  return whole;
}

Result<void> OutputGather::add(std::uint32_t micro_batch, const Value& value) {
  const auto name = "micro-batch " + std::to_string(micro_batch);
  if (micro_batch >= parts_.size() || parts_[micro_batch])
    return internal_error("pipeline", "unexpected output of " + name);
  if (value.absent || value.tensor.shape.empty())
    return bad_input("outputs", "the last layer gave no rows for " + name);
  parts_[micro_batch] = value.tensor;
  ++seen_;
  return {};
}

std::vector<HostTensor> OutputGather::take() {
  std::vector<HostTensor> tensors;
  tensors.reserve(parts_.size());
  for (auto& part : parts_) tensors.push_back(std::move(*part));
  *this = OutputGather();
  return tensors;
}

}  // namespace troupe::mp
