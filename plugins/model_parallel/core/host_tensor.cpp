#include "troupe/model_parallel/host_tensor.hpp"

#include <limits>

namespace troupe::mp {

std::size_t element_size(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT64:
    case v1::DTYPE_INT64: return 8;
    case v1::DTYPE_FLOAT32:
    case v1::DTYPE_INT32: return 4;
    case v1::DTYPE_BFLOAT16:
    case v1::DTYPE_FLOAT16:
    case v1::DTYPE_INT16: return 2;
    case v1::DTYPE_UINT8:
    case v1::DTYPE_INT8:
    case v1::DTYPE_BOOL: return 1;
    default: return 0;
  }
}

bool is_floating(v1::DType dtype) {
  return dtype == v1::DTYPE_FLOAT32 || dtype == v1::DTYPE_FLOAT64 || dtype == v1::DTYPE_BFLOAT16 ||
         dtype == v1::DTYPE_FLOAT16;
}

bool is_integer(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_INT8:
    case v1::DTYPE_INT16:
    case v1::DTYPE_INT32:
    case v1::DTYPE_INT64:
    case v1::DTYPE_UINT8: return true;
    default: return false;
  }
}

std::string to_string(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32: return "float32";
    case v1::DTYPE_FLOAT64: return "float64";
    case v1::DTYPE_INT64: return "int64";
    case v1::DTYPE_INT32: return "int32";
    case v1::DTYPE_UINT8: return "uint8";
    case v1::DTYPE_BOOL: return "bool";
    case v1::DTYPE_BFLOAT16: return "bfloat16";
    case v1::DTYPE_FLOAT16: return "float16";
    case v1::DTYPE_INT8: return "int8";
    case v1::DTYPE_INT16: return "int16";
    default: return "unspecified";
  }
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<std::uint64_t> element_count(const Shape& shape) {
  for (auto dimension : shape)
    if (dimension < 0)
      return bad_input("tensor", "negative dimension in shape " + to_string(shape));
  for (auto dimension : shape)
    if (dimension == 0) return std::uint64_t{0};
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t count = 1;
  for (auto dimension : shape) {
    if (count > most / static_cast<std::uint64_t>(dimension))
      return bad_input("tensor", "too many elements in shape " + to_string(shape));
    count *= static_cast<std::uint64_t>(dimension);
  }
  return count;
}

Result<void> HostTensor::validate() const {
  TROUPE_ASSIGN(const std::uint64_t count, element_count(shape));
  const std::uint64_t size = element_size(dtype);
  if (size == 0) return bad_input("tensor", "element type missing or unknown");
  if (count > std::numeric_limits<std::uint64_t>::max() / size || count * size != data.size())
    return bad_input("tensor", to_string(dtype) + " tensor of shape " + to_string(shape) +
                                   " does not fit a payload of " + std::to_string(data.size()) +
                                   " bytes");
  return {};
}

HostTensor HostTensor::rows(std::int64_t begin, std::int64_t end) const {
  HostTensor part;
  part.dtype = dtype;
  part.shape = shape;
  const std::size_t row_bytes =
      shape[0] == 0 ? 0 : data.size() / static_cast<std::size_t>(shape[0]);
  part.shape[0] = end - begin;
  part.data = data.slice(static_cast<std::size_t>(begin) * row_bytes,
                         static_cast<std::size_t>(end - begin) * row_bytes);
  return part;
}

v1::TensorHeader make_header(const Value& value) {
  v1::TensorHeader header;
  header.set_requires_grad(value.requires_grad);
  header.set_absent(value.absent);
  if (!value.absent) {
    header.set_dtype(value.tensor.dtype);
    for (auto dimension : value.tensor.shape) header.add_shape(dimension);
  }
  return header;
}

Result<Value> make_value(const v1::TensorHeader& header, Blob payload) {
  Value value;
  value.requires_grad = header.requires_grad();
  value.absent = header.absent();
  if (value.absent) {
    if (!payload.empty()) return bad_input("tensor", "an absent value with a payload");
    return value;
  }
  value.tensor.dtype = header.dtype();
  value.tensor.shape.assign(header.shape().begin(), header.shape().end());
  value.tensor.data = std::move(payload);
  TROUPE_TRY(value.tensor.validate());
  return value;
}

}  // namespace troupe::mp
