#include "core/host_sum.hpp"

#include <vector>

namespace troupe::mp {
namespace {

template <class T>
void add_elements(const HostTensor& a, const HostTensor& b, Blob& sum) {
  auto* out = reinterpret_cast<T*>(sum.mutable_data());
  const auto* left = a.as<T>();
  const auto* right = b.as<T>();
  const auto count = sum.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

}  // namespace

Result<Value> add_values(const Value& a, const Value& b) {
  if (a.absent) return b;
  if (b.absent) return a;
  if (a.tensor.dtype != b.tensor.dtype || a.tensor.shape != b.tensor.shape)
    return internal_error("gradient", "two readers sent " + to_string(a.tensor.dtype) + " " +
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

Result<Value> sum_gradients(const std::vector<Value>& by_reader) {
  Value sum;
  sum.absent = true;
  for (auto gradient = by_reader.rbegin(); gradient != by_reader.rend(); ++gradient) {
    TROUPE_ASSIGN(sum, add_values(sum, *gradient));
  }
  return sum;
}

}  // namespace troupe::mp
