#include "libtorch/attention.hpp"

#include <cmath>
#include <limits>

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

namespace troupe::mp::libtorch {
namespace {

/// What is added to the scores of every head: 0 where a position may look, minus infinity
/// elsewhere.
at::Tensor mask_for(const at::Tensor& queries, bool causal) {
  const std::int64_t positions = queries.size(1);
  if (!causal) return at::zeros({1, 1, 1}, queries.options());
  return at::full({1, positions, positions}, -std::numeric_limits<double>::infinity(),
                  queries.options())
      .triu(1);
}

}  // namespace

at::Tensor attend(const at::Tensor& projected, const AttentionShape& shape, const Dropout& dropout,
                  const ForwardContext& context) {
  TORCH_CHECK(projected.dim() == 3 && projected.size(2) % (3 * shape.heads) == 0, "attention of ",
              shape.heads, " heads to a value of shape ", projected.sizes());
  const std::int64_t samples = projected.size(0);
  const std::int64_t positions = projected.size(1);
  const std::int64_t width = projected.size(2) / 3;
  const std::int64_t head_width = width / shape.heads;
  // (3, samples * heads, positions, head_width)
  const at::Tensor parts = projected.view({samples, positions, 3, shape.heads, head_width})
                               .permute({2, 0, 3, 1, 4})
                               .reshape({3, samples * shape.heads, positions, head_width});
  const at::Tensor queries = parts[0];
  const double scale = 1 / std::sqrt(static_cast<double>(head_width));
  const at::Tensor scores = at::baddbmm(mask_for(queries, shape.causal), queries,
                                        parts[1].transpose(1, 2), /*beta=*/1, /*alpha=*/scale);
  const at::Tensor weights =
      dropout(at::softmax(scores, 2).view({samples, shape.heads, positions, positions}), context)
          .view({samples * shape.heads, positions, positions});
  return at::bmm(weights, parts[2])
      .view({samples, shape.heads, positions, head_width})
      .transpose(1, 2)
      .reshape({samples, positions, width});
}

}  // namespace troupe::mp::libtorch
