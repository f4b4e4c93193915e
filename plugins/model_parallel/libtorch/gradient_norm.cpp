#include "libtorch/gradient_norm.hpp"

#include <array>
#include <cmath>

#include <c10/util/Exception.h>

#include "libtorch/tensors.hpp"

namespace troupe::mp::libtorch {
namespace {

/// Independent partial sums, so that the additions need not wait for each other.
template <class T>
double sum_of_squares(const T* data, std::int64_t size) {
  constexpr std::int64_t lanes = 16;
  std::array<double, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const double x = data[i + lane];
      sums[lane] += x * x;
    }
  }
  for (; i < size; ++i) sums[0] += static_cast<double>(data[i]) * data[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class T>
SquaredNorm squared_norm_of(const at::Tensor& tensor) {
  const T* data = tensor.data_ptr<T>();
  SquaredNorm norm;
  norm.value = sum_of_squares(data, tensor.numel());
  // Only an overflow or a bad element makes the sum infinite or NaN: rare, so looked at twice.
  if (!std::isfinite(norm.value))
    for (std::int64_t i = 0; i < tensor.numel(); ++i) norm.finite &= std::isfinite(data[i]);
  return norm;
}

}  // namespace

SquaredNorm squared_norm(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor here = row_major(tensor.is_cpu() ? tensor : tensor.detach().cpu());
  switch (here.scalar_type()) {
    case at::kFloat: return squared_norm_of<float>(here);
    case at::kDouble: return squared_norm_of<double>(here);
    default: TORCH_CHECK(false, "no norm for gradients of type ", at::toString(here.scalar_type()));
  }
}

}  // namespace troupe::mp::libtorch
