#include "parity/resnet_parity.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <boost/test/unit_test.hpp>

namespace troupe::mp::test {
namespace {

double number(const SafetensorsFile& reference, const std::string& name) {
  return as_doubles(must(reference.tensor(name))).front();
}

/// The step after which a result stands: gradients belong to the first.
bool after_first_step(const std::string& name) {
  return name.rfind("gradient/", 0) == 0 || name.find("/0") != std::string::npos;
}

/// Everything the reference has must be among the results, and the other way round.
void check_names(const Tensors& results, const SafetensorsFile& reference) {
  std::size_t expected = 0;
  for (const auto& name : reference.names()) {
    if (name.rfind("float64/", 0) != 0) continue;
    ++expected;
    BOOST_TEST(results.count(name.substr(8)) == 1, name);
  }
  BOOST_TEST(expected > 0);
  BOOST_TEST(results.size() == expected);
}

double largest(const std::vector<double>& numbers) {
  double most = 0;
  for (const double number : numbers) most = std::max(most, std::abs(number));
  return most;
}

/// A gradient that is nothing but rounding has no relative error: it must be small on both sides.
/// True if `name` is one.
bool check_vanishing(const std::string& name, const std::vector<double>& numbers,
                     const SafetensorsFile& reference, const ParityModel& model, double bound) {
  const auto& names = model.without_gradient;
  if (name.rfind("gradient/", 0) != 0 ||
      std::find(names.begin(), names.end(), name.substr(9)) == names.end())
    return false;
  const double norm = number(reference, "float64/norm/0");
  BOOST_TEST(largest(numbers) <= bound * norm);
  BOOST_TEST(largest(as_doubles(must(reference.tensor("float64/" + name)))) <= 1e-12 * norm);
  return true;
}

void check_float64(const Tensors& results, const SafetensorsFile& reference,
                   const ParityModel& model) {
  double worst_first = 0;
  double worst_last = 0;
  for (const auto& [name, numbers] : results) {
    BOOST_TEST_CONTEXT(name) {
      if (check_vanishing(name, numbers, reference, model, 1e-12)) continue;
      const double difference =
          relative_error(numbers, as_doubles(must(reference.tensor("float64/" + name))));
      double& worst = after_first_step(name) ? worst_first : worst_last;
      worst = std::max(worst, difference);
      BOOST_TEST(difference <= (after_first_step(name) ? 1e-9 : 1e-6));
    }
  }
  BOOST_TEST_MESSAGE("float64: largest relative error after one step "
                     << worst_first << ", after three " << worst_last);
}

double median(std::vector<double>& ratios) {
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
}

void check_float32(const Tensors& results, const SafetensorsFile& reference,
                   const ParityModel& model) {
  // Below this a difference is rounding of the last bit, which no ratio can judge.
  constexpr double floor = 2.4e-7;
  std::vector<double> ratios;
  std::vector<double> to_plain;
  for (const auto& [name, numbers] : results) {
    BOOST_TEST_CONTEXT(name) {
      if (check_vanishing(name, numbers, reference, model, 1e-5)) continue;
      const double ours =
          relative_error(numbers, as_doubles(must(reference.tensor("float64/" + name))));
      const double theirs = std::max(floor, number(reference, "float32-error/" + name));
      const double plain = std::max(floor, number(reference, "float32-plain-error/" + name));
      ratios.push_back(std::max(ours, floor) / theirs);
      to_plain.push_back(std::max(ours, floor) / plain);
      BOOST_TEST(ratios.back() <= 8, "error " << ours << ", of plain PyTorch " << theirs);
      if (name.rfind("loss/", 0) == 0) BOOST_TEST(ours <= 1e-4);
    }
  }
  const double middle = median(ratios);
  BOOST_TEST(middle <= 2);
  const double plain_middle = median(to_plain);
  BOOST_TEST_MESSAGE("float32: error relative to plain PyTorch's own, median "
                     << middle << ", largest " << ratios.back() << "; to a single run's, median "
                     << plain_middle << ", largest " << to_plain.back());
}

/// A bound that no gradient exceeds would prove nothing of the clipping.
void check_clipping(const SafetensorsFile& reference, const ParityRuns& runs,
                    const Update& update) {
  if (update.clip == 0) return;
  for (std::uint32_t step = 0; step < runs.steps; ++step)
    BOOST_TEST(number(reference, "float64/norm/" + std::to_string(step)) > update.clip);
}

}  // namespace

Update update(double lr, double momentum, double dampening, double weight_decay, bool nesterov) {
  Update update;
  update.sgd.set_lr(lr);
  update.sgd.set_momentum(momentum);
  update.sgd.set_dampening(dampening);
  update.sgd.set_weight_decay(weight_decay);
  update.sgd.set_nesterov(nesterov);
  return update;
}

void check_parity(const Reference& reference, const std::string& update,
                  const std::vector<std::string>& cuts) {
  const auto& runs = reference.runs();
  const auto expected = reference.open(update);
  const auto in_double = troupe_results(reference, update, cuts, v1::PRECISION_FLOAT64, runs.steps);
  check_names(in_double, expected);
  check_float64(in_double, expected, runs.model);
  check_clipping(expected, runs, runs.updates.at(update));
  check_float32(troupe_results(reference, update, cuts, v1::PRECISION_FLOAT32, 1), expected,
                runs.model);
}

const Reference& shared_reference(const ParityRuns& runs) {
  static std::unique_ptr<const Reference> reference;
  static const ParityRuns* computed = nullptr;
  if (computed != &runs) {
    reference.reset();  // its files go before the next ones are written
    reference = std::make_unique<const Reference>(runs);
    computed = &runs;
  }
  return *reference;
}

}  // namespace troupe::mp::test
