#include "libtorch/batch_norm.hpp"

#include <algorithm>
#include <iostream>
#include <limits>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

namespace {

using troupe::mp::libtorch::BatchNorm;
using troupe::mp::libtorch::DeferredStatistics;
using troupe::mp::libtorch::ForwardContext;
using Activation = BatchNorm::Activation;

constexpr std::uint64_t seed = 3141;
constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

struct Case {
  std::vector<std::int64_t> shape;
  bool add;
  Activation activation;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  for (const auto size : c.shape) out << size << " ";
  return out << (c.add ? "with addend" : "") << (c.activation == Activation::relu ? " relu" : "");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {2, 64, 8, 8}, {1, 16, 5, 3}, {3, 7, 4, 4}, {2, 1, 3, 3}, {4, 600, 1, 1}, {2, 33, 2, 1}})
    for (const bool add : {false, true})
      for (const auto activation : {Activation::none, Activation::relu})
        cases.push_back({shape, add, activation});
  return cases;
}

/// Everything that goes into and comes out of one pass.
struct Pass {
  at::Tensor x, addend, scale, shift, mean, variance, batches;
  at::Tensor y;
  std::vector<at::Tensor> gradients;

  Pass(const Case& c, at::ScalarType type) {
    auto generator = at::detail::createCPUGenerator(seed);
    const auto numbers = [&](at::IntArrayRef shape) {
      return at::randn(shape, generator, at::TensorOptions().dtype(at::kFloat)).to(type);
    };
    const auto tensor = [&] { return numbers(c.shape).contiguous(channels_last); };
    x = (tensor() * 2 + 3).set_requires_grad(true);
    if (c.add) addend = tensor().set_requires_grad(true);
    scale = numbers({c.shape[1]}).set_requires_grad(true);
    shift = numbers({c.shape[1]}).set_requires_grad(true);
    mean = numbers({c.shape[1]});
    variance = numbers({c.shape[1]}).abs() + 0.5;
    batches = at::zeros({}, at::kLong);
    gradient = tensor();
  }

  void run(Activation activation, bool training) {
    ForwardContext context;
    context.training = training;
    run(activation, context);
  }

  void run(Activation activation, const ForwardContext& context) {
    const BatchNorm norm(scale, shift, mean, variance, batches);
    y = norm.forward(x, addend, activation, context);
    if (!y.requires_grad()) return;
    std::vector<at::Tensor> wanted{x, scale, shift};
    if (addend.defined()) wanted.push_back(addend);
    gradients = torch::autograd::grad({y}, wanted, {gradient});
  }

  std::vector<at::Tensor> results() const {
    std::vector<at::Tensor> all{y.detach(), mean, variance, batches};
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }

 private:
  at::Tensor gradient;
};

/// A batch of 7 images, cut into micro-batches of these sizes, through one batch norm whose
/// statistics are deferred; then the same batch uncut, as PyTorch does it.
struct DeferredPass {
  DeferredPass(const std::vector<std::int64_t>& sizes, at::ScalarType type, bool differentiable)
      : whole({{7, 33, 4, 3}, false, Activation::none}, type),
        cut({{7, 33, 4, 3}, false, Activation::none}, type) {
    whole.run(Activation::none, true);
    context.training = true;
    context.deferred = &statistics;
    const BatchNorm norm(cut.scale, cut.shift, cut.mean, cut.variance, cut.batches);
    const c10::AutoGradMode grad_mode(differentiable);
    std::int64_t begin = 0;
    for (const auto size : sizes) {
      const auto part = cut.x.detach().slice(0, begin, begin + size);
      norm.forward(part, {}, Activation::none, context);
      begin += size;
    }
  }

  ForwardContext context;
  DeferredStatistics statistics;
  Pass whole;
  Pass cut;
};

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const auto wide = expected.to(at::kDouble);
  return (actual.to(at::kDouble) - wide).abs().max().item<double>() /
         std::max(wide.abs().max().item<double>(), 1e-3);
}

void check_against_double(const Case& c, bool training) {
  BOOST_TEST_CONTEXT(c << (training ? ", training" : ", evaluation")) {
    Pass single(c, at::kFloat);
    Pass wide(c, at::kDouble);  // LibTorch's own operations
    single.run(c.activation, training);
    wide.run(c.activation, training);
    const auto found = single.results();
    const auto expected = wide.results();
    BOOST_REQUIRE_EQUAL(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      BOOST_TEST(found[i].scalar_type() == (i == 3 ? at::kLong : at::kFloat));
      BOOST_TEST(relative_error(found[i], expected[i]) < 2e-6, "result " << i);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_agrees_with_libtorch_in_double) {
  BOOST_TEST_MESSAGE("seed " << seed);
  for (const Case& c : all_cases()) check_against_double(c, true);
}

BOOST_AUTO_TEST_CASE(evaluation_agrees_with_libtorch_in_double) {
  for (const Case& c : all_cases()) {
    check_against_double(c, false);
    const c10::NoGradGuard no_grad;
    check_against_double(c, false);
  }
}

BOOST_AUTO_TEST_CASE(deferred_statistics_are_those_of_the_uncut_batch) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {7}, {3, 3, 1}, {2, 2, 2, 1}, {1, 6}, {1, 1, 1, 1, 1, 1, 1}})
    for (const auto type : {at::kFloat, at::kDouble})
      for (const bool differentiable : {false, true}) {
        DeferredPass pass(sizes, type, differentiable);
        const double bound = type == at::kFloat ? 1e-6 : 1e-14;
        BOOST_TEST(pass.cut.batches.item<std::int64_t>() == 0);
        BOOST_TEST(relative_error(pass.cut.mean, pass.whole.mean) > 1e-3);
        pass.statistics.commit();
        BOOST_TEST(relative_error(pass.cut.mean, pass.whole.mean) < bound);
        BOOST_TEST(relative_error(pass.cut.variance, pass.whole.variance) < bound);
        BOOST_TEST(pass.cut.batches.item<std::int64_t>() == 1);
        const at::Tensor once = pass.cut.mean.clone();
        pass.statistics.commit();  // nothing is left of the step
        BOOST_TEST(at::equal(pass.cut.mean, once));
        BOOST_TEST(pass.cut.batches.item<std::int64_t>() == 1);
      }
}

BOOST_AUTO_TEST_CASE(discarded_statistics_change_nothing) {
  DeferredPass pass({4, 3}, at::kFloat, true);
  const at::Tensor before = pass.cut.mean.clone();
  pass.statistics.discard();
  pass.statistics.commit();
  BOOST_TEST(at::equal(pass.cut.mean, before));
  BOOST_TEST(pass.cut.batches.item<std::int64_t>() == 0);
}

BOOST_AUTO_TEST_CASE(a_repeated_forward_leaves_the_statistics_and_gives_the_same_bits) {
  for (const Case& c : all_cases())
    for (const auto type : {at::kFloat, at::kDouble})
      for (const bool deferred : {false, true}) {
        Pass pass(c, type);
        DeferredStatistics statistics;
        ForwardContext context;
        context.training = true;
        if (deferred) context.deferred = &statistics;
        pass.run(c.activation, context);
        if (deferred) statistics.commit();
        const auto first = pass.results();
        std::vector<at::Tensor> kept;
        for (const auto& tensor : first) kept.push_back(tensor.clone());
        context.recomputing = true;
        pass.run(c.activation, context);
        if (deferred) statistics.commit();
        const auto second = pass.results();
        for (std::size_t i = 0; i < kept.size(); ++i)
          BOOST_TEST(at::equal(second[i], kept[i]), "result " << i << " of " << c);
        BOOST_TEST(pass.batches.item<std::int64_t>() == 1);
      }
}

BOOST_AUTO_TEST_CASE(inputs_are_left_alone) {
  for (const Case& c : all_cases()) {
    Pass pass(c, at::kFloat);
    const at::Tensor x = pass.x.detach().clone();
    const at::Tensor addend = c.add ? pass.addend.detach().clone() : at::Tensor();
    pass.run(c.activation, true);
    BOOST_TEST(at::equal(x, pass.x));
    if (c.add) BOOST_TEST(at::equal(addend, pass.addend));
  }
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_bits) {
  const int threads = at::get_num_threads();
  for (const Case& c : {Case{{4, 256, 32, 32}, true, Activation::relu},
                        Case{{4, 250, 32, 32}, false, Activation::relu}}) {
    std::vector<std::vector<at::Tensor>> results;
    for (const int count : {1, 3}) {
      at::set_num_threads(count);
      Pass pass(c, at::kFloat);
      pass.run(c.activation, true);
      results.push_back(pass.results());
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      BOOST_TEST(at::equal(results[0][i], results[1][i]), "result " << i);
  }
  at::set_num_threads(threads);
}

BOOST_AUTO_TEST_CASE(what_is_not_a_number_stays_visible) {
  Pass pass({{2, 16, 3, 3}, false, Activation::relu}, at::kFloat);
  pass.x.detach()[0][5][1][1] = std::numeric_limits<float>::quiet_NaN();
  pass.run(Activation::relu, true);
  BOOST_TEST(pass.y.detach().isnan().sum().item<std::int64_t>() == 2 * 3 * 3);
}

BOOST_AUTO_TEST_CASE(other_layouts_are_left_to_libtorch) {
  const Case c{{2, 16, 6, 6}, true, Activation::relu};
  Pass expected(c, at::kFloat);
  Pass plain(c, at::kFloat);
  plain.x = plain.x.detach().contiguous().set_requires_grad(true);
  expected.run(c.activation, true);
  plain.run(c.activation, true);
  for (std::size_t i = 0; i < plain.results().size(); ++i)
    BOOST_TEST(relative_error(plain.results()[i], expected.results()[i]) < 1e-5, "result " << i);
}
