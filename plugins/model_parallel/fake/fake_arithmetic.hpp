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
/// [0, 10). float32, float64 and int64 only.
HostTensor tensor_from_digest(std::uint64_t seed, v1::DType dtype, const Shape& shape);

/// a + b, element by element, in the tensors' own precision; an absent side counts as nothing.
/// Both must be float32 or float64 and of one shape.
Result<Value> add_values(const Value& a, const Value& b);

}  // namespace troupe::mp
