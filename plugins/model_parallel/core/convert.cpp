#include "core/convert.hpp"

#include <cmath>
#include <cstring>

namespace troupe::mp {
namespace {

float from_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// IEEE 754 binary16.
float from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  float magnitude;
  if (exponent == 0x1F)
    magnitude = fraction == 0 ? HUGE_VALF : std::nanf("");
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  else
    magnitude = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

template <class From, class To, class Map>
HostTensor map_elements(const HostTensor& tensor, v1::DType dtype, Map map) {
  HostTensor result;
  result.dtype = dtype;
  result.shape = tensor.shape;
  const std::size_t count = tensor.data.size() / sizeof(From);
  result.data = Blob::uninitialized(count * sizeof(To));
  const From* from = tensor.as<From>();
  auto* to = reinterpret_cast<To*>(result.data.mutable_data());
  // Of 8 bits they are numbers, not characters. NOLINTNEXTLINE(bugprone-signed-char-misuse)
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(map(from[i]));
  return result;
}

template <class T>
T same(T value) {
  return value;
}

template <class To>
Result<HostTensor> to_floating(const HostTensor& tensor, v1::DType dtype) {
  switch (tensor.dtype) {
    case v1::DTYPE_FLOAT32: return map_elements<float, To>(tensor, dtype, same<float>);
    case v1::DTYPE_FLOAT64: return map_elements<double, To>(tensor, dtype, same<double>);
    case v1::DTYPE_BFLOAT16: return map_elements<std::uint16_t, To>(tensor, dtype, from_bfloat16);
    default: return map_elements<std::uint16_t, To>(tensor, dtype, from_float16);
  }
}

Result<HostTensor> to_int64(const HostTensor& tensor) {
  constexpr auto dtype = v1::DTYPE_INT64;
  using To = std::int64_t;
  switch (tensor.dtype) {
    case v1::DTYPE_INT32: return map_elements<std::int32_t, To>(tensor, dtype, same<std::int32_t>);
    case v1::DTYPE_INT16: return map_elements<std::int16_t, To>(tensor, dtype, same<std::int16_t>);
    case v1::DTYPE_INT8: return map_elements<std::int8_t, To>(tensor, dtype, same<std::int8_t>);
    default: return map_elements<std::uint8_t, To>(tensor, dtype, same<std::uint8_t>);
  }
}

}  // namespace

Result<HostTensor> convert(const HostTensor& tensor, v1::DType dtype) {
  if (tensor.dtype == dtype) return tensor;
  if (is_floating(tensor.dtype)) {
    if (dtype == v1::DTYPE_FLOAT32) return to_floating<float>(tensor, dtype);
    if (dtype == v1::DTYPE_FLOAT64) return to_floating<double>(tensor, dtype);
  }
  if (is_integer(tensor.dtype) && dtype == v1::DTYPE_INT64) return to_int64(tensor);
  return internal_error(
      "tensor", "no conversion from " + to_string(tensor.dtype) + " to " + to_string(dtype));
}

}  // namespace troupe::mp
