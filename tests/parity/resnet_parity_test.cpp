// Troupe against plain PyTorch (Debian's python3-torch and python3-torchvision) from the same
// weights and data. float64 decides; float32 is judged by how far plain PyTorch's float32 is from
// its float64, the worst of several runs that float32 cannot tell apart (see reference.py).
#include <algorithm>
#include <cmath>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "core/model_catalog.hpp"
#include "parity/parity_case.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

v1::Sgd sgd(double lr, double momentum = 0, double dampening = 0, double weight_decay = 0,
            bool nesterov = false) {
  v1::Sgd config;
  config.set_lr(lr);
  config.set_momentum(momentum);
  config.set_dampening(dampening);
  config.set_weight_decay(weight_decay);
  config.set_nesterov(nesterov);
  return config;
}

double largest(const std::vector<double>& numbers) {
  double most = 0;
  for (const double number : numbers) most = std::max(most, std::abs(number));
  return most;
}

/// Largest difference of two tensors, relative to the largest element of the second.
double error(const std::vector<double>& ours, const std::vector<double>& reference) {
  BOOST_REQUIRE_EQUAL(ours.size(), reference.size());
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(ours[i] - reference[i]);
    if (!(difference <= most)) most = difference;  // NaN counts as worst
  }
  return most / std::max(largest(reference), 1e-30);
}

/// The step after which a result stands: gradients belong to the first.
bool after_first_step(const std::string& name) {
  return name.rfind("gradient/", 0) == 0 || name.find("/0") != std::string::npos;
}

void check_float64(const Tensors& results, const SafetensorsFile& reference) {
  double worst_first = 0;
  double worst_last = 0;
  for (const auto& [name, numbers] : results) {
    BOOST_TEST_CONTEXT(name) {
      const double difference =
          error(numbers, as_doubles(must(reference.tensor("float64/" + name))));
      double& worst = after_first_step(name) ? worst_first : worst_last;
      worst = std::max(worst, difference);
      BOOST_TEST(difference <= (after_first_step(name) ? 1e-9 : 1e-6));
    }
  }
  BOOST_TEST_MESSAGE("float64: largest relative error after one step "
                     << worst_first << ", after three " << worst_last);
}

void check_float32(const Tensors& results, const SafetensorsFile& reference) {
  // Below this a difference is rounding of the last bit, which no ratio can judge.
  constexpr double floor = 2.4e-7;
  std::vector<double> ratios;
  for (const auto& [name, numbers] : results) {
    if (!after_first_step(name)) continue;
    BOOST_TEST_CONTEXT(name) {
      const auto exact = as_doubles(must(reference.tensor("float64/" + name)));
      const double ours = error(numbers, exact);
      const double theirs =
          std::max(floor, as_doubles(must(reference.tensor("float32-error/" + name))).front());
      ratios.push_back(std::max(ours, floor) / theirs);
      BOOST_TEST(ratios.back() <= 8, "error " << ours << ", of plain PyTorch " << theirs);
      if (name.rfind("loss/", 0) == 0) BOOST_TEST(ours <= 1e-4);
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  BOOST_TEST(median <= 2);
  BOOST_TEST_MESSAGE("float32: error relative to plain PyTorch's own, median "
                     << median << ", largest " << ratios.back());
}

/// Everything the reference has must be among the results, and the other way round.
void check_names(const Tensors& results, const SafetensorsFile& reference) {
  std::size_t expected = 0;
  for (const auto& name : reference.names()) {
    if (name.rfind("float64/", 0) != 0) continue;
    ++expected;
    BOOST_TEST(results.count(name.substr(8)) == 1, name);
  }
  BOOST_TEST(results.size() == expected);
}

void check_parity(const ParityCase& parity_case) {
  const TemporaryDirectory directory;
  const auto reference = pytorch_reference(parity_case, directory);
  const auto in_double = troupe_results(parity_case, reference, v1::PRECISION_FLOAT64);
  check_names(in_double, reference);
  check_float64(in_double, reference);
  check_float32(troupe_results(parity_case, reference, v1::PRECISION_FLOAT32), reference);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resnet18)

BOOST_AUTO_TEST_CASE(whole_batch_on_one_stage_with_mse) {
  ParityCase c;
  c.sgd = sgd(0.05);
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(whole_batch_on_two_stages_with_cross_entropy) {
  ParityCase c;
  c.cross_entropy = true;
  c.sgd = sgd(0.01);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(even_micro_batches_on_three_stages) {
  ParityCase c;
  c.micro_batch = 2;
  c.cross_entropy = true;
  c.sgd = sgd(0.01);
  c.cuts = {"layer2.1", "fc"};
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(uneven_micro_batches) {
  ParityCase c;
  c.batch = 5;
  c.micro_batch = 2;
  c.sgd = sgd(0.05);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(momentum) {
  ParityCase c;
  c.sgd = sgd(0.01, 0.9);
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(momentum_with_dampening) {
  ParityCase c;
  c.sgd = sgd(0.02, 0.9, 0.3);
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(weight_decay) {
  ParityCase c;
  c.sgd = sgd(0.02, 0, 0, 0.01);
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(nesterov_with_weight_decay) {
  ParityCase c;
  c.sgd = sgd(0.01, 0.8, 0, 0.01, true);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(clipping_over_two_stages) {
  ParityCase c;
  c.cross_entropy = true;
  c.clip = 0.5;
  c.sgd = sgd(0.05, 0.9);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(resnet50)

BOOST_AUTO_TEST_CASE(whole_batch_on_two_stages_with_mse) {
  ParityCase c;
  c.depth = 50;
  c.sgd = sgd(0.05);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_CASE(uneven_micro_batches_with_cross_entropy) {
  ParityCase c;
  c.depth = 50;
  c.batch = 5;
  c.micro_batch = 2;
  c.cross_entropy = true;
  c.sgd = sgd(0.002, 0.9);
  c.cuts = {"layer3"};
  check_parity(c);
}

BOOST_AUTO_TEST_SUITE_END()
