// ResNet-18 against plain PyTorch: cuts, micro-batches, every option of SGD, clipping.
#include <boost/test/unit_test.hpp>

#include "parity/resnet_parity.hpp"

using namespace troupe::mp::test;

namespace {

ParityRuns with_mse() {
  ParityRuns runs;
  runs.updates["plain"] = update(0.05);
  runs.updates["momentum"] = update(0.01, 0.9);
  runs.updates["dampening"] = update(0.02, 0.9, 0.3);
  runs.updates["weight_decay"] = update(0.02, 0, 0, 0.01);
  runs.updates["nesterov"] = update(0.01, 0.8, 0, 0.01, true);
  return runs;
}

ParityRuns with_cross_entropy() {
  ParityRuns runs;
  runs.cross_entropy = true;
  runs.updates["plain"] = update(0.01);
  runs.updates["clipped"] = update(0.05, 0.9);
  runs.updates["clipped"].clip = 0.5;
  return runs;
}

const Reference& mse_reference() {
  static const ParityRuns runs = with_mse();
  return shared_reference(runs);
}

const Reference& cross_entropy_reference() {
  static const ParityRuns runs = with_cross_entropy();
  return shared_reference(runs);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resnet18)

BOOST_AUTO_TEST_CASE(whole_batch_with_mse) { check_parity(mse_reference(), "plain"); }

BOOST_AUTO_TEST_CASE(momentum) { check_parity(mse_reference(), "momentum"); }

BOOST_AUTO_TEST_CASE(momentum_with_dampening) { check_parity(mse_reference(), "dampening"); }

BOOST_AUTO_TEST_CASE(weight_decay) { check_parity(mse_reference(), "weight_decay"); }

BOOST_AUTO_TEST_CASE(nesterov_with_weight_decay) {
  check_parity(mse_reference(), "nesterov", {"layer3"});
}

BOOST_AUTO_TEST_CASE(whole_batch_on_two_stages_with_cross_entropy) {
  check_parity(cross_entropy_reference(), "plain", {"layer3"});
}

BOOST_AUTO_TEST_CASE(clipping_over_two_stages) {
  check_parity(cross_entropy_reference(), "clipped", {"layer3"});
}

BOOST_AUTO_TEST_CASE(even_micro_batches_on_three_stages) {
  ParityRuns runs;
  runs.micro_batch = 2;
  runs.cross_entropy = true;
  runs.updates["plain"] = update(0.01);
  check_parity(Reference(runs), "plain", {"layer2.1", "fc"});
}

BOOST_AUTO_TEST_CASE(uneven_micro_batches) {
  ParityRuns runs;
  runs.batch = 5;
  runs.micro_batch = 2;
  runs.updates["plain"] = update(0.05);
  check_parity(Reference(runs), "plain", {"layer3"});
}

BOOST_AUTO_TEST_SUITE_END()
