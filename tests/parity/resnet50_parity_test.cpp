// ResNet-50 against plain PyTorch, with and without micro-batches.
#include <boost/test/unit_test.hpp>

#include "parity/resnet_parity.hpp"

using namespace troupe::mp::test;

BOOST_AUTO_TEST_SUITE(resnet50)

BOOST_AUTO_TEST_CASE(whole_batch_on_two_stages_with_mse) {
  ParityRuns runs;
  runs.model = resnet_model(50);
  runs.updates["plain"] = update(0.05);
  check_parity(Reference(runs), "plain", {"layer3"});
}

BOOST_AUTO_TEST_CASE(uneven_micro_batches_with_cross_entropy) {
  ParityRuns runs;
  runs.model = resnet_model(50);
  runs.batch = 5;
  runs.micro_batch = 2;
  runs.cross_entropy = true;
  runs.updates["momentum"] = update(0.002, 0.9);
  check_parity(Reference(runs), "momentum", {"layer3"});
}

BOOST_AUTO_TEST_SUITE_END()
