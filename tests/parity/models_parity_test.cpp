// A small model of every family against plain PyTorch: loss, every gradient and the weights after
// three steps, on two stages and in uneven micro-batches.
#include <boost/test/unit_test.hpp>

#include <string>

#include "parity/resnet_parity.hpp"

using namespace troupe::mp::test;

namespace {

void check_model(const std::string& name, bool cross_entropy = false) {
  ParityRuns runs;
  runs.model = small_model(name);
  runs.batch = 5;
  runs.micro_batch = 3;
  runs.cross_entropy = cross_entropy;
  runs.updates["momentum"] = update(0.01, 0.9);
  check_parity(Reference(runs), "momentum", {runs.model.middle});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(models)

BOOST_AUTO_TEST_CASE(resnext) { check_model("small_resnext", true); }

BOOST_AUTO_TEST_CASE(wide_resnet) { check_model("small_wide_resnet"); }

BOOST_AUTO_TEST_CASE(vgg) { check_model("small_vgg", true); }

BOOST_AUTO_TEST_CASE(vgg_with_batch_norm) { check_model("small_vgg_bn"); }

BOOST_AUTO_TEST_CASE(multi_layer_perceptron) { check_model("small_mlp", true); }

BOOST_AUTO_TEST_CASE(vision_transformer) { check_model("small_vit", true); }

BOOST_AUTO_TEST_CASE(gpt2) { check_model("small_gpt2"); }

BOOST_AUTO_TEST_CASE(gpt2_with_a_head_of_its_own) { check_model("small_gpt2_untied"); }

BOOST_AUTO_TEST_SUITE_END()
