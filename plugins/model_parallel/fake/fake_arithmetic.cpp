#include "fake/fake_arithmetic.hpp"

#include <cstring>

#include "core/bits.hpp"

namespace troupe::mp {
namespace {

/// The finaliser of SplitMix64 (Steele et al., "Fast Splittable Pseudorandom Number Generators",
/// 2014): a bijection in which every input bit reaches every output bit.
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t element_digest(std::uint64_t seed, std::uint64_t index) {
  return scramble(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}

/// 24 bits, so that float32 holds it exactly; never 0.
double unit_from(std::uint64_t digest) {
  return (static_cast<double>(digest >> 40) + 0.5) / static_cast<double>(1 << 24);
}

template <class T, class Element>
void fill(Blob& data, const Element& element) {
  auto* out = reinterpret_cast<T*>(data.mutable_data());
  const auto count = data.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(element(i));
}

float from_upper_half(std::uint16_t half) {
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// Rounds to the nearest, ties to even; for finite numbers.
std::uint16_t upper_half(double number) {
  const auto single = static_cast<float>(number);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

double element_of(const HostTensor& tensor, std::size_t i) {
  switch (tensor.dtype) {
    case v1::DTYPE_FLOAT32: return tensor.as<float>()[i];
    case v1::DTYPE_FLOAT64: return tensor.as<double>()[i];
    default: return from_upper_half(tensor.as<std::uint16_t>()[i]);
  }
}

/// A floating-point tensor of elements that are functions of their index.
template <class Element>
HostTensor make_floating(v1::DType dtype, const Shape& shape, std::size_t count,
                         const Element& element) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.data = Blob::uninitialized(count * element_size(dtype));
  switch (dtype) {
    case v1::DTYPE_FLOAT32: fill<float>(tensor.data, element); break;
    case v1::DTYPE_FLOAT64: fill<double>(tensor.data, element); break;
    default:
      fill<std::uint16_t>(tensor.data, [&](std::size_t i) { return upper_half(element(i)); });
  }
  return tensor;
}

}  // namespace

Digest& Digest::add(std::uint64_t number) {
  state_ = scramble(state_ * 0x100000001b3u + number);
  return *this;
}

Digest& Digest::add(double number) { return add(bits_of(number)); }

Digest& Digest::add(const std::string& text) {
  for (const char character : text) add(static_cast<std::uint64_t>(character));
  return add(std::uint64_t{text.size()});
}

Digest& Digest::add(const HostTensor& tensor) {
  add(static_cast<std::uint64_t>(tensor.dtype));
  for (const auto dimension : tensor.shape) add(static_cast<std::uint64_t>(dimension));
  const auto* bytes = tensor.data.data();
  const auto size = tensor.data.size();
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    add(word);
  }
  for (; at < size; ++at) add(static_cast<std::uint64_t>(bytes[at]));
  return *this;
}

Digest& Digest::add(const Value& value) {
  if (value.absent) return add(std::uint64_t{0});
  return add(std::uint64_t{1}).add(value.tensor);
}

double Digest::unit_number() const { return unit_from(state_); }

HostTensor tensor_from_digest(std::uint64_t seed, v1::DType dtype, const Shape& shape) {
  std::uint64_t count = 1;
  for (const auto dimension : shape) count *= static_cast<std::uint64_t>(dimension);
  if (dtype != v1::DTYPE_INT64)
    return make_floating(dtype, shape, count, [seed](std::size_t i) {
      return 2 * unit_from(element_digest(seed, i)) - 1;
    });
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.data = Blob::uninitialized(count * sizeof(std::int64_t));
  fill<std::int64_t>(tensor.data, [seed](std::size_t i) { return element_digest(seed, i) % 10; });
  return tensor;
}

Result<Value> add_values(const Value& a, const Value& b) {
  if (a.absent) return b;
  if (b.absent) return a;
  if (a.tensor.dtype != b.tensor.dtype || a.tensor.shape != b.tensor.shape)
    return internal_error("gradient", "two readers gave " + to_string(a.tensor.dtype) + " " +
                                          to_string(a.tensor.shape) + " and " +
                                          to_string(b.tensor.dtype) + " " +
                                          to_string(b.tensor.shape) + " for one value");
  if (!is_floating(a.tensor.dtype))
    return internal_error("gradient", "cannot add gradients of type " + to_string(a.tensor.dtype));
  // Exact in double up to the last rounding, which is the type's own.
  Value sum = a;
  sum.tensor = make_floating(
      a.tensor.dtype, a.tensor.shape, a.tensor.data.size() / element_size(a.tensor.dtype),
      [&](std::size_t i) { return element_of(a.tensor, i) + element_of(b.tensor, i); });
  return sum;
}

Value converted_to(v1::DType dtype, const Value& value) {
  if (value.absent || !is_floating(value.tensor.dtype) || dtype == v1::DTYPE_UNSPECIFIED ||
      dtype == value.tensor.dtype)
    return value;
  Value converted = value;
  converted.tensor = make_floating(dtype, value.tensor.shape,
                                   value.tensor.data.size() / element_size(value.tensor.dtype),
                                   [&](std::size_t i) { return element_of(value.tensor, i); });
  return converted;
}

Value rounded_to(v1::DType dtype, const Value& value) {
  return converted_to(value.tensor.dtype, converted_to(dtype, value));
}

}  // namespace troupe::mp
