// How every tensor of a residual network begins: convolutions by Kaiming normal over their fan-out,
// batch norm by ones and zeros, the classifier as torch.nn.Linear (torchvision's resnet.py).
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "core/model_catalog.hpp"
#include "core/random.hpp"

namespace troupe::mp {
namespace {

std::vector<v1::Layer> layers_of_resnet(std::uint32_t depth) {
  v1::Model model;
  model.mutable_resnet()->set_depth(depth);
  model.mutable_resnet()->set_num_classes(1000);
  auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  return std::move(layers).value();
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_of_classifier(const v1::Parameter& tensor) { return tensor.name().rfind("fc.", 0) == 0; }

/// Of a convolution with `shape` (out, in, k, k).
double kaiming_deviation(const v1::Parameter& tensor) {
  return std::sqrt(2.0 / static_cast<double>(tensor.shape(0) * tensor.shape(2) * tensor.shape(3)));
}

void check_parameter(const v1::Parameter& tensor, double fan_in_of_classifier) {
  const auto& init = tensor.init();
  if (is_of_classifier(tensor)) {
    BOOST_TEST(init.uniform_bound() == 1 / std::sqrt(fan_in_of_classifier));
  } else if (tensor.shape_size() == 4) {
    BOOST_TEST(init.normal_std() == kaiming_deviation(tensor));
  } else {
    BOOST_REQUIRE(init.kind_case() == v1::Init::kConstant);
    BOOST_TEST(init.constant() == (ends_with(tensor.name(), ".weight") ? 1.0 : 0.0));
  }
}

void check_buffer(const v1::Parameter& tensor) {
  BOOST_REQUIRE(tensor.init().kind_case() == v1::Init::kConstant);
  BOOST_TEST(tensor.init().constant() == (ends_with(tensor.name(), ".running_var") ? 1.0 : 0.0));
  BOOST_TEST(tensor.integer() == ends_with(tensor.name(), ".num_batches_tracked"));
}

/// Mean and standard deviation of a float64 tensor.
std::pair<double, double> moments(const HostTensor& tensor) {
  const auto count = tensor.data.size() / sizeof(double);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double number = tensor.as<double>()[i];
    sum += number;
    squares += number * number;
  }
  const double mean = sum / static_cast<double>(count);
  return {mean, std::sqrt(squares / static_cast<double>(count) - mean * mean)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(initial_weights)

BOOST_AUTO_TEST_CASE(every_tensor_of_a_residual_network_begins_as_in_torchvision) {
  for (const std::uint32_t depth : {18, 50}) {
    int downsampling = 0;
    for (const auto& layer : layers_of_resnet(depth)) {
      for (const auto& tensor : layer.parameters())
        BOOST_TEST_CONTEXT("ResNet-" << depth << ", " << tensor.name()) {
          check_parameter(tensor, depth == 18 ? 512 : 2048);
          if (tensor.name().find(".downsample.") != std::string::npos) ++downsampling;
        }
      for (const auto& tensor : layer.buffers())
        BOOST_TEST_CONTEXT("ResNet-" << depth << ", " << tensor.name()) check_buffer(tensor);
    }
    BOOST_TEST(downsampling == (depth == 18 ? 9 : 12));  // a convolution's weight, a norm's two
  }
}

BOOST_AUTO_TEST_CASE(convolutions_are_drawn_with_the_deviation_that_is_asked_for) {
  for (const auto& layer : layers_of_resnet(18))
    for (const auto& tensor : layer.parameters()) {
      if (tensor.shape_size() != 4) continue;
      BOOST_TEST_CONTEXT(tensor.name()) {
        const auto [mean, deviation] = moments(initial_tensor(tensor, 5, v1::DTYPE_FLOAT64));
        const double expected = kaiming_deviation(tensor);
        BOOST_TEST(std::abs(mean) < 0.05 * expected);
        BOOST_TEST(std::abs(deviation - expected) < 0.05 * expected);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp
