#include "libtorch/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/random.hpp"
#include "libtorch/dropout_kernels.hpp"

namespace troupe::mp::libtorch {
namespace {

void check_rate(double rate) {
  TORCH_CHECK(rate >= 0 && rate < 1, "a rate of ", rate, " is not a probability below 1");
}

/// A word below this is drawn with probability `rate`.
std::uint32_t threshold_of(double rate) {
  return static_cast<std::uint32_t>(std::min(std::ldexp(rate, 32), 4294967295.0));
}

/// One key for each row of `x`. IValues hold signed numbers.
std::vector<std::int64_t> row_keys(const at::Tensor& x, const std::string& name,
                                   const ForwardContext& context) {
  const MicroBatch& batch = context.micro_batch;
  TORCH_CHECK(x.dim() > 0 && x.size(0) == static_cast<std::int64_t>(batch.samples),
              "dropout of a value of shape ", x.sizes(), " in a micro-batch of ", batch.samples,
              " samples: its first dimension must be the samples");
  // Beside the streams of initial values, which have the names of parameters.
  const std::string stream = "dropout/" + name;
  std::vector<std::int64_t> keys;
  for (std::uint32_t row = 0; row < batch.samples; ++row)
    keys.push_back(static_cast<std::int64_t>(context.sample_key(stream, row)));
  return keys;
}

template <class T>
void drop_rows(const at::Tensor& x, const std::vector<std::int64_t>& keys, double rate,
               const at::Tensor& y) {
  // Enough work for a thread; a multiple of the block.
  constexpr std::int64_t piece = 64 * dropout_block;
  const std::int64_t rows = x.size(0);
  const std::int64_t elements = rows == 0 ? 0 : x.numel() / rows;
  const std::int64_t pieces = (elements + piece - 1) / piece;
  const T* from = x.data_ptr<T>();
  T* to = y.data_ptr<T>();
  at::parallel_for(0, rows * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / pieces;
      const std::int64_t first = i % pieces * piece;
      const DropoutDraw draw{static_cast<std::uint64_t>(keys[static_cast<std::size_t>(row)]),
                             threshold_of(rate), 1 / (1 - rate)};
      drop_elements(draw, first, std::min(first + piece, elements), from + row * elements,
                    to + row * elements);
    }
  });
}

/// Zeros and 1 / (1 - rate), for types and devices that the kernels do not know.
at::Tensor factors_like(const at::Tensor& x, const std::vector<std::int64_t>& keys, double rate) {
  const at::Tensor factors = at::ones(x.sizes(), at::TensorOptions().dtype(at::kFloat));
  drop_rows<float>(factors, keys, rate, factors);
  return factors.to(x.device(), x.scalar_type());
}

at::Tensor dropped(const at::Tensor& given, const std::vector<std::int64_t>& keys, double rate) {
  const at::Tensor x = given.contiguous();
  if (!x.is_cpu() || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble))
    return x * factors_like(x, keys, rate);
  const at::Tensor y = at::empty_like(x);
  if (x.scalar_type() == at::kFloat)
    drop_rows<float>(x, keys, rate, y);
  else
    drop_rows<double>(x, keys, rate, y);
  return y;
}

}  // namespace

/// The gradient is dropped as the value was.
class Dropout::Function : public torch::autograd::Function<Dropout::Function> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& x,
                            const std::vector<std::int64_t>& keys, double rate) {
    context->saved_data["keys"] = keys;
    context->saved_data["rate"] = rate;
    return dropped(x, keys, rate);
  }

  static Variables backward(Context* context, const Variables& gradients) {
    const auto keys = context->saved_data["keys"].toIntVector();
    const double rate = context->saved_data["rate"].toDouble();
    return {dropped(gradients[0], keys, rate), at::Tensor(), at::Tensor()};
  }
};

Dropout::Dropout(std::string name, double rate) : name_(std::move(name)), rate_(rate) {
  check_rate(rate);
}

at::Tensor Dropout::operator()(const at::Tensor& x, const ForwardContext& context) const {
  if (!context.training || rate_ == 0) return x;
  return Function::apply(x, row_keys(x, name_, context), rate_);
}

DropPath::DropPath(std::string name, double rate) : name_(std::move(name)), rate_(rate) {
  check_rate(rate);
}

at::Tensor DropPath::operator()(const at::Tensor& x, const ForwardContext& context) const {
  if (!context.training || rate_ == 0) return x;
  const auto keys = row_keys(x, name_, context);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  const at::Tensor factors = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  for (std::size_t row = 0; row < keys.size(); ++row) {
    const auto words = philox(static_cast<std::uint64_t>(keys[row]), 0, 0);
    factors.data_ptr<double>()[row] = words[0] < threshold_of(rate_) ? 0 : 1 / (1 - rate_);
  }
  return x * factors.to(x.device(), x.scalar_type());
}

}  // namespace troupe::mp::libtorch
