#include "data/tensor_tools.hpp"

#include <cstring>
#include <utility>

namespace troupe::mp {

namespace {

/// A batch larger than this is a slip of the configuration.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 46;

}  // namespace

Result<HostTensor> allocate_samples(v1::DType dtype, std::uint64_t samples,
                                    const Shape& sample_shape, const std::string& where) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = sample_shape;
  tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(samples));
  const auto count = element_count(tensor.shape);
  if (!count || *count > most_bytes / element_size(dtype))
    return bad_input(where, "a batch of shape " + to_string(tensor.shape) + " is too large");
  tensor.data = Blob::uninitialized(*count * element_size(dtype));
  return tensor;
}

HostTensor gather_rows(const HostTensor& tensor, const std::vector<std::uint64_t>& order) {
  HostTensor result;
  result.dtype = tensor.dtype;
  result.shape = tensor.shape;
  const std::size_t row =
      tensor.shape[0] == 0 ? 0 : tensor.data.size() / static_cast<std::size_t>(tensor.shape[0]);
  result.shape[0] = static_cast<std::int64_t>(order.size());
  result.data = Blob::uninitialized(row * order.size());
  if (row == 0) return result;
  for (std::size_t i = 0; i < order.size(); ++i)
    std::memcpy(result.data.mutable_data() + i * row, tensor.data.data() + order[i] * row, row);
  return result;
}

}  // namespace troupe::mp
