// The model catalog lists the tensors of torchvision's own models: names, shapes and order.
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "core/model_catalog.hpp"
#include "parity/python.hpp"
#include "troupe/model_parallel/host_tensor.hpp"

using namespace troupe::mp;
using troupe::mp::test::run_python;

namespace {

std::string line_of(const char* kind, const v1::Parameter& tensor) {
  return std::string(kind) + " " + tensor.name() + " " +
         to_string(Shape{tensor.shape().begin(), tensor.shape().end()});
}

std::vector<std::string> lines_of_catalog(int depth) {
  v1::Model model;
  model.mutable_resnet()->set_depth(static_cast<std::uint32_t>(depth));
  model.mutable_resnet()->set_num_classes(1000);
  const auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  std::vector<std::string> lines;
  for (const auto& layer : *layers)
    for (const auto& tensor : layer.parameters()) lines.push_back(line_of("parameter", tensor));
  for (const auto& layer : *layers)
    for (const auto& tensor : layer.buffers()) lines.push_back(line_of("buffer", tensor));
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(catalog_parity)

BOOST_AUTO_TEST_CASE(residual_networks_list_the_tensors_of_torchvision) {
  for (const int depth : {18, 34, 50, 101, 152}) {
    BOOST_TEST_CONTEXT("ResNet-" << depth)
    BOOST_TEST(lines_of_catalog(depth) == run_python("model_tensors.py", {std::to_string(depth)}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
