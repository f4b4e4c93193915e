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

template <class T>
void add_elements(const HostTensor& a, const HostTensor& b, Blob& sum) {
  const auto* left = a.as<T>();
  const auto* right = b.as<T>();
  fill<T>(sum, [&](std::size_t i) { return left[i] + right[i]; });
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
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.data = Blob::uninitialized(count * element_size(dtype));
  const auto floating = [seed](std::size_t i) {
    return 2 * unit_from(element_digest(seed, i)) - 1;
  };
  const auto integer = [seed](std::size_t i) { return element_digest(seed, i) % 10; };
  switch (dtype) {
    case v1::DTYPE_FLOAT64: fill<double>(tensor.data, floating); break;
    case v1::DTYPE_INT64: fill<std::int64_t>(tensor.data, integer); break;
    default: fill<float>(tensor.data, floating); break;
  }
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
  Value sum = a;
  sum.tensor.data = Blob::uninitialized(a.tensor.data.size());
  switch (a.tensor.dtype) {
    case v1::DTYPE_FLOAT32: add_elements<float>(a.tensor, b.tensor, sum.tensor.data); break;
    case v1::DTYPE_FLOAT64: add_elements<double>(a.tensor, b.tensor, sum.tensor.data); break;
    default:
      return internal_error("gradient",
                            "cannot add gradients of type " + to_string(a.tensor.dtype));
  }
  return sum;
}

}  // namespace troupe::mp
