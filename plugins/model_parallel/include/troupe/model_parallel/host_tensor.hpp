#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/blob.hpp"
#include "troupe/model_parallel/v1/tensor.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The plugin's protobuf messages; the runtime's are `runtime::v1`.
namespace v1 = ::troupe::model_parallel::v1;

using Shape = std::vector<std::int64_t>;

/// Size of one element in bytes; 0 for DTYPE_UNSPECIFIED.
TROUPE_API std::size_t element_size(v1::DType dtype);

/// Whether gradients can exist for this type.
TROUPE_API bool is_floating(v1::DType dtype);

/// int8, int16, int32, int64 or uint8.
TROUPE_API bool is_integer(v1::DType dtype);

/// "float32", "int64", ...: the names PyTorch users know.
TROUPE_API std::string to_string(v1::DType dtype);

/// "[8, 3, 128, 128]".
TROUPE_API std::string to_string(const Shape& shape);

/// Number of elements; an error if the product overflows or a dimension is negative.
TROUPE_API Result<std::uint64_t> element_count(const Shape& shape);

/// An immutable tensor in host memory, elements in row-major order. Copies share the bytes.
/// Knows nothing of LibTorch: data actors, files and C++ drivers work with it.
struct TROUPE_API HostTensor {
  v1::DType dtype = v1::DTYPE_FLOAT32;
  Shape shape;
  Blob data;

  /// `data.size()` must be element_count(shape) * element_size(dtype); checked by `validate`.
  Result<void> validate() const;

  /// Rows [begin, end) of the first dimension, sharing memory. The range must be inside.
  HostTensor rows(std::int64_t begin, std::int64_t end) const;

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

/// Tensors by name: a model's parameters and buffers, a batch's fields.
using TensorMap = std::map<std::string, HostTensor>;

/// What crosses a stage boundary: a tensor with what the receiver must know of it, or nothing
/// (an optional value that is not there, a gradient that does not exist).
struct Value {
  HostTensor tensor;
  bool requires_grad = false;
  bool absent = false;
};

TROUPE_API v1::TensorHeader make_header(const Value& value);

/// Checks the header against the payload's size before anything trusts it.
TROUPE_API Result<Value> make_value(const v1::TensorHeader& header, Blob payload);

}  // namespace troupe::mp
