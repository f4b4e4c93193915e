#include "libtorch/tensors.hpp"

#include <memory>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

namespace troupe::mp::libtorch {
namespace {

std::vector<std::int64_t> row_major_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

/// Strides of an (N, C, H, W) tensor in the order N, H, W, C.
std::vector<std::int64_t> channels_last_strides(at::IntArrayRef sizes) {
  const std::int64_t channels = std::max<std::int64_t>(sizes[1], 1);
  const std::int64_t row = std::max<std::int64_t>(sizes[3], 1) * channels;
  return {std::max<std::int64_t>(sizes[2], 1) * row, 1, row, channels};
}

}  // namespace

at::ScalarType to_scalar_type(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32: return at::kFloat;
    case v1::DTYPE_FLOAT64: return at::kDouble;
    case v1::DTYPE_INT64: return at::kLong;
    case v1::DTYPE_INT32: return at::kInt;
    case v1::DTYPE_UINT8: return at::kByte;
    case v1::DTYPE_BOOL: return at::kBool;
    case v1::DTYPE_BFLOAT16: return at::kBFloat16;
    case v1::DTYPE_FLOAT16: return at::kHalf;
    case v1::DTYPE_INT8: return at::kChar;
    case v1::DTYPE_INT16: return at::kShort;
    default: TORCH_CHECK(false, "element type ", to_string(dtype), " has no LibTorch equivalent");
  }
}

v1::DType to_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return v1::DTYPE_FLOAT32;
    case at::kDouble: return v1::DTYPE_FLOAT64;
    case at::kLong: return v1::DTYPE_INT64;
    case at::kInt: return v1::DTYPE_INT32;
    case at::kByte: return v1::DTYPE_UINT8;
    case at::kBool: return v1::DTYPE_BOOL;
    case at::kBFloat16: return v1::DTYPE_BFLOAT16;
    case at::kHalf: return v1::DTYPE_FLOAT16;
    case at::kChar: return v1::DTYPE_INT8;
    case at::kShort: return v1::DTYPE_INT16;
    default: TORCH_CHECK(false, "element type ", at::toString(type), " cannot leave a stage");
  }
}

at::Tensor to_tensor(const HostTensor& host) {
  const auto valid = host.validate();
  TORCH_CHECK(valid.ok(), valid.error().what);
  const auto options = at::TensorOptions().dtype(to_scalar_type(host.dtype));
  if (host.data.empty()) return at::empty(host.shape, options);
  auto* bytes = const_cast<std::byte*>(host.data.data());
  const auto keep_alive = [blob = host.data](void*) {};
  const std::size_t size = element_size(host.dtype);
  if (reinterpret_cast<std::uintptr_t>(bytes) % size == 0)
    return at::from_blob(bytes, host.shape, keep_alive, options);
  const Blob aligned = Blob::copy_of(bytes, host.data.size());
  return at::from_blob(
      const_cast<std::byte*>(aligned.data()), host.shape, [aligned](void*) {}, options);
}

HostTensor to_host(const at::Tensor& tensor) {
  HostTensor host;
  const at::Tensor here = row_major(tensor.is_cpu() ? tensor : tensor.detach().cpu());
  host.dtype = to_dtype(here.scalar_type());
  host.shape = here.sizes().vec();
  if (here.numel() != 0)
    host.data = Blob::borrowed(here.data_ptr(), here.nbytes(), std::make_shared<at::Tensor>(here));
  return host;
}

at::Tensor in_layout(const at::Tensor& tensor, at::MemoryFormat format) {
  if (!tensor.defined()) return tensor;
  const bool as_images = format == channels_last && tensor.dim() == 4;
  at::Tensor plain = tensor.detach().contiguous(as_images ? format : at::MemoryFormat::Contiguous);
  // Where a dimension is 1 (or a tensor empty), LibTorch calls any stride contiguous and still
  // chooses kernels by it.
  const auto strides =
      as_images ? channels_last_strides(plain.sizes()) : row_major_strides(plain.sizes());
  if (plain.strides() != at::IntArrayRef(strides)) plain = plain.as_strided(plain.sizes(), strides);
  return plain;
}

at::Tensor row_major(const at::Tensor& tensor) {
  return in_layout(tensor, at::MemoryFormat::Contiguous);
}

std::uint64_t byte_size(const at::Tensor& tensor) { return tensor.defined() ? tensor.nbytes() : 0; }

}  // namespace troupe::mp::libtorch
