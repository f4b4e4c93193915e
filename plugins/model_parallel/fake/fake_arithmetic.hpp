#pragma once

#include <cstdint>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// A running hash in which order matters: whatever is mixed in twice, left out, swapped or paired
/// with something else changes it. Not for security.
class Digest {
 public:
  Digest& add(std::uint64_t number);
  Digest& add(double number);  ///< its bits
  Digest& add(const std::string& text);
  Digest& add(const HostTensor& tensor);  ///< type, shape and bytes
  Digest& add(const Value& value);        ///< that it is absent, or its tensor

  std::uint64_t value() const { return state_; }
  /// In (0, 1).
  double unit_number() const;

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15u;
};

/// A tensor whose elements are a function of `seed`: floating ones in (-1, 1), integers in
/// [0, 10). float32, float64, int64 and the 16-bit floating types only; the latter two both have
/// the upper half of a float32, since nobody computes with them.
HostTensor tensor_from_digest(std::uint64_t seed, v1::DType dtype, const Shape& shape);

/// a + b, element by element, in the tensors' own precision; an absent side counts as nothing.
/// Both must be floating-point and of one shape.
Result<Value> add_values(const Value& a, const Value& b);

/// A floating-point tensor in another floating-point type; any other value, and any value for
/// DTYPE_UNSPECIFIED, as it is.
Value converted_to(v1::DType dtype, const Value& value);

/// The same back in its own type: what is left of it.
Value rounded_to(v1::DType dtype, const Value& value);

}  // namespace troupe::mp
