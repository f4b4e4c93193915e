#include "libtorch/convolution.hpp"

#include <iostream>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

namespace {

using troupe::mp::libtorch::Convolution;

constexpr std::uint64_t seed = 2718;

struct Case {
  std::int64_t batch;
  std::int64_t in;
  std::int64_t out;
  std::int64_t height;
  std::int64_t width;
  Convolution::Pair kernel;
  Convolution::Pair stride;
  Convolution::Pair padding;
  std::int64_t groups = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << "x" << c.in << "x" << c.height << "x" << c.width << " to " << c.out
             << ", kernel " << c.kernel[0] << "x" << c.kernel[1] << ", stride " << c.stride[0]
             << "x" << c.stride[1] << ", padding " << c.padding[0] << "x" << c.padding[1]
             << ", groups " << c.groups;
}

const std::vector<Case> cases = {
    {1, 64, 64, 8, 8, {1, 1}, {1, 1}, {0, 0}},     {1, 256, 64, 32, 32, {1, 1}, {1, 1}, {0, 0}},
    {3, 64, 128, 15, 9, {1, 1}, {2, 2}, {0, 0}},   {1, 64, 64, 8, 8, {3, 3}, {1, 1}, {1, 1}},
    {2, 128, 128, 16, 16, {3, 3}, {2, 2}, {1, 1}}, {5, 32, 48, 7, 7, {3, 3}, {2, 2}, {1, 1}},
    {1, 3, 64, 32, 32, {7, 7}, {2, 2}, {3, 3}},    {4, 3, 64, 33, 31, {7, 7}, {2, 2}, {3, 3}},
    {2, 3, 16, 32, 32, {3, 3}, {1, 1}, {1, 1}},    {2, 5, 7, 11, 13, {3, 3}, {1, 1}, {1, 1}},
    {1, 17, 33, 9, 6, {1, 1}, {1, 1}, {0, 0}},     {3, 20, 30, 10, 10, {5, 3}, {2, 1}, {2, 1}},
    {2, 24, 40, 6, 8, {1, 7}, {1, 1}, {0, 3}},     {1, 512, 512, 4, 4, {3, 3}, {1, 1}, {1, 1}},
    {1, 16, 16, 1, 1, {1, 1}, {1, 1}, {0, 0}},     {2, 1, 4, 5, 5, {3, 3}, {1, 1}, {0, 0}},
    {2, 16, 1, 5, 5, {3, 3}, {1, 1}, {1, 1}},      {2, 128, 128, 9, 9, {3, 3}, {1, 1}, {1, 1}, 32},
    {3, 64, 128, 8, 6, {3, 3}, {2, 2}, {1, 1}, 4}, {2, 64, 64, 7, 7, {3, 3}, {1, 1}, {1, 1}, 2},
    {2, 12, 18, 7, 5, {3, 1}, {1, 1}, {1, 0}, 3},  {1, 16, 16, 6, 6, {3, 3}, {1, 1}, {1, 1}, 16},
};

/// Normally distributed numbers from a generator that starts anew in each test.
class Numbers {
 public:
  at::Tensor operator()(const std::vector<std::int64_t>& shape, at::ScalarType type = at::kFloat) {
    return at::randn(shape, generator_, at::TensorOptions().dtype(at::kDouble)).to(type);
  }

  at::Tensor weight(const Case& c, at::ScalarType type = at::kFloat) {
    at::Tensor weight = (*this)({c.out, c.in / c.groups, c.kernel[0], c.kernel[1]}, type);
    return weight.set_requires_grad(true);
  }

  at::Tensor input(const Case& c, at::ScalarType type = at::kFloat) {
    return (*this)({c.batch, c.in, c.height, c.width}, type);
  }

 private:
  at::Generator generator_ = at::detail::createCPUGenerator(seed);
};

/// Row-major bytes may differ from channels-last ones: compares values.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.contiguous(), b.contiguous());
}

/// The largest error in units of the largest value.
double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  BOOST_REQUIRE(actual.defined());
  BOOST_REQUIRE(actual.sizes() == expected.sizes());
  const double size = expected.abs().max().item<double>();
  return (actual.to(at::kDouble) - expected).abs().max().item<double>() / size;
}

struct Results {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
};

/// What LibTorch computes from the same numbers in float64.
Results reference(const Case& c, const at::Tensor& input, const at::Tensor& weight,
                  const at::Tensor& gradient) {
  const at::Tensor x = input.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor w = weight.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor y = at::conv2d(x, w, {}, c.stride, c.padding, 1, c.groups);
  const auto found = torch::autograd::grad({y}, {x, w}, {gradient.to(at::kDouble)});
  return {y.detach(), found[0], found[1]};
}

/// The gradient of `input`, if it wants one; that of the weight stays in the convolution, or comes
/// from autograd where LibTorch computes.
at::Tensor backward(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight,
                    const at::Tensor& gradient, at::Tensor* weight_gradient = nullptr) {
  std::vector<at::Tensor> wanted;
  if (input.requires_grad()) wanted.push_back(input);
  wanted.push_back(weight);
  const auto found = torch::autograd::grad({output}, wanted, {gradient}, false, false, true);
  if (weight_gradient != nullptr) *weight_gradient = found.back();
  return input.requires_grad() ? found[0] : at::Tensor();
}

at::Tensor gradient_of(Convolution& convolution, const at::Tensor& from_autograd) {
  const at::Tensor taken = convolution.take_gradient();
  return taken.defined() ? taken : from_autograd;
}

BOOST_AUTO_TEST_SUITE(convolution)

BOOST_AUTO_TEST_CASE(all_passes_agree_with_libtorch_in_double) {
  BOOST_TEST_MESSAGE("seed " << seed);
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    Numbers numbers;
    for (const Case& c : cases) {
      BOOST_TEST_CONTEXT(c) {
        const at::Tensor weight = numbers.weight(c);
        const at::Tensor input = numbers.input(c).contiguous(format).set_requires_grad(true);
        Convolution convolution(weight, c.stride, c.padding, c.groups);
        const at::Tensor output = convolution.forward(input);
        const at::Tensor gradient = numbers(output.sizes().vec()).contiguous(format);
        at::Tensor weight_gradient;
        const at::Tensor input_gradient =
            backward(output, input, weight, gradient, &weight_gradient);
        weight_gradient = gradient_of(convolution, weight_gradient);

        const Results expected = reference(c, input, weight, gradient);
        BOOST_TEST(relative_error(output, expected.output) < 2e-6);
        BOOST_TEST(relative_error(input_gradient, expected.input_gradient) < 2e-6);
        BOOST_TEST(relative_error(weight_gradient, expected.weight_gradient) < 2e-6);
        BOOST_TEST(weight_gradient.is_contiguous());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pass_without_gradients_computes_the_same) {
  Numbers numbers;
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c) {
      const Convolution convolution(numbers.weight(c), c.stride, c.padding, c.groups);
      const at::Tensor input = numbers.input(c);
      const at::Tensor differentiable = convolution.forward(input);
      const c10::NoGradGuard no_grad;
      const at::Tensor plain = convolution.forward(input);
      BOOST_TEST(!plain.requires_grad());
      BOOST_TEST(differentiable.requires_grad());
      BOOST_TEST(same_bits(plain, differentiable));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_input_that_wants_no_gradient_gets_none) {
  Numbers numbers;
  const Case c = cases[6];
  const at::Tensor weight = numbers.weight(c);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor input = numbers.input(c);
  const at::Tensor output = convolution.forward(input);
  const at::Tensor gradient = numbers(output.sizes().vec());
  at::Tensor weight_gradient;
  BOOST_TEST(!backward(output, input, weight, gradient, &weight_gradient).defined());
  weight_gradient = gradient_of(convolution, weight_gradient);
  const Results expected = reference(c, input, weight, gradient);
  BOOST_TEST(relative_error(weight_gradient, expected.weight_gradient) < 2e-6);
}

BOOST_AUTO_TEST_CASE(a_frozen_weight_gets_no_gradient) {
  Numbers numbers;
  const Case c = cases[3];
  const at::Tensor weight = numbers.weight(c).set_requires_grad(false);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor input = numbers.input(c).set_requires_grad(true);
  const at::Tensor output = convolution.forward(input);
  const at::Tensor gradient = numbers(output.sizes().vec());
  const auto found = torch::autograd::grad({output}, {input}, {gradient});
  const Results expected = reference(c, input, weight, gradient);
  BOOST_TEST(relative_error(found[0], expected.input_gradient) < 2e-6);
  BOOST_TEST(!convolution.take_gradient().defined());
}

/// Gradients of micro-batches that overlap as 1F1B with a window of two lets them.
at::Tensor interleaved(const Case& c, const at::Tensor& weight,
                       const std::vector<at::Tensor>& inputs,
                       const std::vector<at::Tensor>& gradients, std::size_t window) {
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  std::vector<at::Tensor> outputs;
  at::Tensor sum;
  for (std::size_t done = 0; done < inputs.size(); ++done) {
    while (outputs.size() < inputs.size() && outputs.size() < done + window)
      outputs.push_back(convolution.forward(inputs[outputs.size()]));
    at::Tensor from_autograd;
    backward(outputs[done], inputs[done], weight, gradients[done], &from_autograd);
    if (from_autograd.defined()) sum = sum.defined() ? sum + from_autograd : from_autograd;
  }
  return gradient_of(convolution, sum);
}

BOOST_AUTO_TEST_CASE(gradients_accumulate_alike_under_every_schedule) {
  Numbers numbers;
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c) {
      const at::Tensor weight = numbers.weight(c);
      std::vector<at::Tensor> inputs, gradients;
      at::Tensor expected = at::zeros_like(weight, at::TensorOptions().dtype(at::kDouble)).detach();
      for (int i = 0; i < 5; ++i) {
        // The last micro-batch is larger, and so perhaps in another layout.
        Case micro_batch = c;
        if (i == 4) micro_batch.batch += 3;
        inputs.push_back(numbers.input(micro_batch).set_requires_grad(true));
        const at::Tensor output =
            at::conv2d(inputs.back(), weight, {}, c.stride, c.padding, 1, c.groups);
        gradients.push_back(numbers(output.sizes().vec()));
        expected += reference(c, inputs.back(), weight, gradients.back()).weight_gradient;
      }
      const at::Tensor one_by_one = interleaved(c, weight, inputs, gradients, 1);
      BOOST_TEST(relative_error(one_by_one, expected) < 3e-6);
      BOOST_TEST(same_bits(one_by_one, interleaved(c, weight, inputs, gradients, 2)));
      BOOST_TEST(same_bits(one_by_one, interleaved(c, weight, inputs, gradients, 5)));
    }
  }
}

BOOST_AUTO_TEST_CASE(two_runs_give_the_same_bits) {
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c) {
      std::vector<Results> runs;
      for (int run = 0; run < 2; ++run) {
        Numbers numbers;
        const at::Tensor weight = numbers.weight(c);
        const at::Tensor input = numbers.input(c).set_requires_grad(true);
        Convolution convolution(weight, c.stride, c.padding, c.groups);
        Results results;
        results.output = convolution.forward(input);
        const at::Tensor gradient = numbers(results.output.sizes().vec());
        results.input_gradient =
            backward(results.output, input, weight, gradient, &results.weight_gradient);
        results.weight_gradient = gradient_of(convolution, results.weight_gradient);
        runs.push_back(results);
      }
      BOOST_TEST(same_bits(runs[0].output, runs[1].output));
      BOOST_TEST(same_bits(runs[0].input_gradient, runs[1].input_gradient));
      BOOST_TEST(same_bits(runs[0].weight_gradient, runs[1].weight_gradient));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_taken_or_discarded_gradient_is_gone) {
  Numbers numbers;
  const Case c = cases[3];
  const at::Tensor weight = numbers.weight(c);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor input = numbers.input(c);
  const at::Tensor gradient = numbers(convolution.forward(input).sizes().vec());
  const auto run = [&] {
    at::Tensor from_autograd;
    backward(convolution.forward(input), input, weight, gradient, &from_autograd);
    return from_autograd;
  };
  const at::Tensor first = gradient_of(convolution, run());
  BOOST_TEST(!convolution.take_gradient().defined());
  run();
  convolution.discard_gradient();
  BOOST_TEST(!convolution.take_gradient().defined());
  BOOST_TEST(same_bits(gradient_of(convolution, run()), first));
}

BOOST_AUTO_TEST_CASE(a_changed_weight_is_noticed_in_both_directions) {
  Numbers numbers;
  const Case c = cases[3];
  const at::Tensor weight = numbers.weight(c);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor input = numbers.input(c).set_requires_grad(true);
  const at::Tensor gradient = numbers(convolution.forward(input).sizes().vec());
  const auto check = [&] {
    const at::Tensor output = convolution.forward(input);
    const at::Tensor input_gradient = backward(output, input, weight, gradient);
    const Results expected = reference(c, input, weight, gradient);
    BOOST_TEST(relative_error(output, expected.output) < 2e-6);
    BOOST_TEST(relative_error(input_gradient, expected.input_gradient) < 2e-6);
  };
  check();
  {
    const c10::NoGradGuard no_grad;
    at::Tensor(weight).add_(numbers(weight.sizes().vec()));
  }
  check();
}

BOOST_AUTO_TEST_CASE(a_weight_changed_between_forward_and_backward_is_refused) {
  Numbers numbers;
  const Case c = cases[3];
  const at::Tensor weight = numbers.weight(c);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor input = numbers.input(c).set_requires_grad(true);
  const at::Tensor output = convolution.forward(input);
  {
    const c10::NoGradGuard no_grad;
    at::Tensor(weight).mul_(2);
  }
  BOOST_CHECK_THROW(backward(output, input, weight, output.detach()), std::exception);
}

BOOST_AUTO_TEST_CASE(a_graph_may_outlive_the_convolution) {
  Numbers numbers;
  const Case c = cases[3];
  const at::Tensor weight = numbers.weight(c);
  const at::Tensor input = numbers.input(c).set_requires_grad(true);
  at::Tensor output;
  {
    const Convolution convolution(weight, c.stride, c.padding, c.groups);
    output = convolution.forward(input);
  }
  const at::Tensor gradient = numbers(output.sizes().vec());
  const at::Tensor input_gradient = backward(output, input, weight, gradient);
  const Results expected = reference(c, input, weight, gradient);
  BOOST_TEST(relative_error(input_gradient, expected.input_gradient) < 2e-6);
}

BOOST_AUTO_TEST_CASE(many_shapes_do_not_disturb_each_other) {
  Numbers numbers;
  Case c = cases[3];
  const at::Tensor weight = numbers.weight(c);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  for (std::int64_t size = 1; size <= 40; ++size) {
    c.height = size;
    const at::Tensor input = numbers.input(c);
    const at::Tensor expected = at::conv2d(input.to(at::kDouble), weight.to(at::kDouble), {},
                                           c.stride, c.padding, 1, c.groups);
    BOOST_TEST(relative_error(convolution.forward(input).detach(), expected.detach()) < 2e-6);
  }
}

BOOST_AUTO_TEST_CASE(double_precision_is_libtorch_itself) {
  Numbers numbers;
  const Case c = cases[4];
  const at::Tensor weight = numbers.weight(c, at::kDouble);
  const at::Tensor input = numbers.input(c, at::kDouble).set_requires_grad(true);
  Convolution convolution(weight, c.stride, c.padding, c.groups);
  const at::Tensor output = convolution.forward(input);
  const at::Tensor gradient = numbers(output.sizes().vec(), at::kDouble);
  at::Tensor weight_gradient;
  const at::Tensor input_gradient = backward(output, input, weight, gradient, &weight_gradient);
  const Results expected = reference(c, input, weight, gradient);
  BOOST_TEST(same_bits(output, expected.output));
  BOOST_TEST(same_bits(input_gradient, expected.input_gradient));
  BOOST_TEST(same_bits(weight_gradient, expected.weight_gradient));
  BOOST_TEST(!convolution.take_gradient().defined());
}

BOOST_AUTO_TEST_CASE(what_libtorch_refuses_is_refused) {
  Numbers numbers;
  const Convolution convolution(numbers.weight(cases[3]), {1, 1}, {0, 0});
  BOOST_CHECK_THROW(convolution.forward(numbers({1, 63, 8, 8})), std::exception);
  BOOST_CHECK_THROW(convolution.forward(numbers({1, 64, 2, 2})), std::exception);
  BOOST_CHECK_THROW(convolution.forward(numbers({64})), std::exception);
  BOOST_CHECK_THROW(Convolution(numbers({4, 4}), {1, 1}, {0, 0}), std::exception);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
