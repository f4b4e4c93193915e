// Dropout and stochastic depth: what is dropped depends on seed, step, sample and name alone.
#include "libtorch/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include "core/random.hpp"
#include "libtorch/dropout_kernels.hpp"

using namespace troupe::mp;
using namespace troupe::mp::libtorch;

namespace {

ForwardContext context_of(std::uint64_t first_sample, std::uint32_t samples, std::uint64_t step = 0,
                          std::uint64_t seed = 9) {
  ForwardContext context;
  context.training = true;
  context.seed = seed;
  context.micro_batch.step = step;
  context.micro_batch.first_sample = first_sample;
  context.micro_batch.samples = samples;
  return context;
}

at::Tensor ones(std::vector<std::int64_t> shape, at::ScalarType type = at::kFloat) {
  return at::ones(shape, at::TensorOptions().dtype(type));
}

/// 1 where an element stays.
at::Tensor kept(const Dropout& dropout, std::vector<std::int64_t> shape,
                const ForwardContext& context, at::ScalarType type = at::kFloat) {
  return dropout(ones(std::move(shape), type), context).ne(0);
}

double average(const at::Tensor& tensor) { return tensor.to(at::kDouble).mean().item<double>(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(dropout)

BOOST_AUTO_TEST_CASE(the_kernel_draws_the_numbers_of_philox) {
  // Not a multiple of the block, and beyond where the lower half of the counter ends.
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{640}}) {
    const std::int64_t count = 3 * dropout_block + 17;
    const DropoutDraw draw{0x123456789abcdef, 0x80000000, 2};
    std::vector<double> x(static_cast<std::size_t>(begin + count), 1);
    std::vector<double> y(x.size(), -1);
    drop_elements(draw, begin, begin + count, x.data(), y.data());
    for (std::int64_t e = begin; e < begin + count; ++e) {
      const auto counter = static_cast<std::uint64_t>(16 * (e / 64) + e % 16);
      const std::uint32_t word =
          philox(draw.key, counter, 0)[static_cast<std::size_t>(e % 64 / 16)];
      BOOST_REQUIRE_EQUAL(y[static_cast<std::size_t>(e)], word < draw.threshold ? 0 : 2);
    }
    for (std::int64_t e = 0; e < begin; ++e)
      BOOST_REQUIRE_EQUAL(y[static_cast<std::size_t>(e)], -1);
  }
}

BOOST_AUTO_TEST_CASE(the_kept_are_scaled_and_the_rate_is_met) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Dropout dropout("layer", rate);
    const at::Tensor y = dropout(ones({50, 4000}), context_of(0, 50));
    const at::Tensor values = y.masked_select(y.ne(0));
    BOOST_TEST(values.min().item<float>() == static_cast<float>(1 / (1 - rate)));
    BOOST_TEST(values.max().item<float>() == static_cast<float>(1 / (1 - rate)));
    // 200,000 draws: five standard deviations are below 0.006.
    BOOST_TEST(std::abs(average(y.ne(0)) - (1 - rate)) < 0.006);
    BOOST_TEST(std::abs(average(y) - 1) < 0.006 / (1 - rate));
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_dropped_in_evaluation_or_at_rate_zero) {
  auto evaluation = context_of(0, 2);
  evaluation.training = false;
  const at::Tensor x = ones({2, 100});
  BOOST_TEST(Dropout("layer", 0.5)(x, evaluation).is_same(x));
  BOOST_TEST(Dropout("layer", 0)(x, context_of(0, 2)).is_same(x));
  BOOST_TEST(DropPath("layer", 0.5)(x, evaluation).is_same(x));
  BOOST_TEST(DropPath("layer", 0)(x, context_of(0, 2)).is_same(x));
}

BOOST_AUTO_TEST_CASE(the_mask_does_not_depend_on_the_micro_batches) {
  const Dropout dropout("layer", 0.3);
  const at::Tensor whole = kept(dropout, {7, 5, 130}, context_of(20, 7));
  BOOST_TEST(!whole.all().item<bool>());
  for (const std::uint32_t size : {1u, 2u, 3u, 5u}) {
    std::vector<at::Tensor> parts;
    for (std::uint32_t begin = 0; begin < 7; begin += size) {
      const std::uint32_t rows = std::min(size, 7 - begin);
      parts.push_back(kept(dropout, {rows, 5, 130}, context_of(20 + begin, rows)));
    }
    BOOST_TEST(at::equal(at::cat(parts), whole), "micro-batches of " << size);
  }
  BOOST_TEST(at::equal(kept(dropout, {7, 650}, context_of(20, 7)), whole.view({7, 650})));
}

BOOST_AUTO_TEST_CASE(the_mask_is_the_same_in_every_type_and_layout) {
  const Dropout dropout("layer", 0.3);
  const at::Tensor expected = kept(dropout, {3, 4, 6, 5}, context_of(0, 3));
  for (const auto type : {at::kDouble, at::kBFloat16})
    BOOST_TEST(at::equal(kept(dropout, {3, 4, 6, 5}, context_of(0, 3), type), expected));
  const at::Tensor strided = ones({3, 4, 6, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  BOOST_TEST(at::equal(dropout(strided, context_of(0, 3)).ne(0), expected));
}

BOOST_AUTO_TEST_CASE(seed_step_sample_and_name_change_the_mask) {
  const Dropout dropout("layer", 0.5);
  const at::Tensor mask = kept(dropout, {1, 1000}, context_of(4, 1, 2, 9));
  BOOST_TEST(at::equal(mask, kept(dropout, {1, 1000}, context_of(4, 1, 2, 9))));
  for (const auto& other : {context_of(5, 1, 2, 9), context_of(4, 1, 3, 9), context_of(4, 1, 2, 8)})
    BOOST_TEST(std::abs(average(mask.eq(kept(dropout, {1, 1000}, other))) - 0.5) < 0.1);
  const Dropout elsewhere("other", 0.5);
  const at::Tensor other = kept(elsewhere, {1, 1000}, context_of(4, 1, 2, 9));
  BOOST_TEST(std::abs(average(mask.eq(other)) - 0.5) < 0.1);
}

BOOST_AUTO_TEST_CASE(the_gradient_is_dropped_as_the_value_was) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Dropout dropout("layer", 0.4);
    const at::Tensor x = ones({4, 300}, type).set_requires_grad(true);
    const at::Tensor y = dropout(x, context_of(3, 4));
    const at::Tensor gradient = ones({4, 300}, type) * 3;
    const auto found = torch::autograd::grad({y}, {x}, {gradient});
    BOOST_TEST(at::equal(found[0], y.detach() * 3));
  }
}

BOOST_AUTO_TEST_CASE(stochastic_depth_drops_whole_samples) {
  const DropPath path("layer", 0.25);
  const at::Tensor x = ones({4000, 3, 2}).set_requires_grad(true);
  const at::Tensor y = path(x, context_of(0, 4000));
  const at::Tensor rows = y.view({4000, 6});
  BOOST_TEST(at::equal(rows.amin({1}), rows.amax({1})));
  BOOST_TEST(std::abs(average(y.ne(0)) - 0.75) < 0.04);
  BOOST_TEST(y.max().item<float>() == static_cast<float>(1 / 0.75));
  const auto found = torch::autograd::grad({y}, {x}, {ones({4000, 3, 2})});
  BOOST_TEST(at::equal(found[0], y.detach()));
  const at::Tensor part = path(ones({10, 3, 2}), context_of(100, 10));
  BOOST_TEST(at::equal(part, y.slice(0, 100, 110).detach()));
}

BOOST_AUTO_TEST_CASE(a_value_whose_rows_are_not_the_samples_is_refused) {
  const Dropout dropout("layer", 0.5);
  BOOST_CHECK_THROW(dropout(ones({6, 10}), context_of(0, 3)), c10::Error);
  BOOST_CHECK_THROW(Dropout("layer", 1), c10::Error);
  BOOST_CHECK_THROW(DropPath("layer", -0.1), c10::Error);
}

BOOST_AUTO_TEST_SUITE_END()
