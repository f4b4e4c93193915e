#pragma once

#include <ATen/core/Tensor.h>

#include "troupe/model_parallel/host_tensor.hpp"

namespace troupe::mp::libtorch {

/// The order of elements in which convolutions are fastest: (samples, height, width, channels).
inline constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

/// Element types, both ways. Throw c10::Error for a type the other side does not know.
at::ScalarType to_scalar_type(v1::DType dtype);
v1::DType to_dtype(at::ScalarType type);

/// A CPU tensor over the bytes of `host`, which it keeps alive; nothing is copied unless the bytes
/// are not aligned to their element. The result must not be modified. Throws c10::Error when
/// `host` does not validate.
at::Tensor to_tensor(const HostTensor& host);

/// The row-major bytes of `tensor` in host memory. A row-major CPU tensor is shared, not copied:
/// it must not change afterwards.
HostTensor to_host(const at::Tensor& tensor);

/// `tensor` detached and in this order with the strides a fresh tensor of its shape has, so that
/// nothing computed from it can depend on how it came here. Channels-last applies to tensors of 4
/// dimensions; others are made row-major. Shares memory where it can.
at::Tensor in_layout(const at::Tensor& tensor, at::MemoryFormat format);

/// The same in row-major order.
at::Tensor row_major(const at::Tensor& tensor);

/// Bytes of the elements; 0 for an undefined tensor.
std::uint64_t byte_size(const at::Tensor& tensor);

}  // namespace troupe::mp::libtorch
