// How the tensors of the catalog's models begin. Of residual networks: convolutions by Kaiming
// normal over their fan-out, batch norm by ones and zeros, the classifier as torch.nn.Linear
// (torchvision's resnet.py). Of the others: as the module of the same name.
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
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

/// By parameter.
std::map<std::string, v1::Init> inits_of(const v1::Model& model) {
  const auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  std::map<std::string, v1::Init> inits;
  for (const auto& layer : *layers)
    for (const auto& tensor : layer.parameters()) inits[tensor.name()] = tensor.init();
  return inits;
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

BOOST_AUTO_TEST_CASE(a_vision_transformer_begins_as_in_torchvision) {
  v1::Model model;
  model.mutable_vit()->set_variant(v1::VisionTransformer::VARIANT_B_16);
  model.mutable_vit()->set_num_classes(1000);
  const auto inits = inits_of(model);
  const auto& patches = inits.at("conv_proj.weight").truncated_normal();
  BOOST_TEST(patches.std() == std::sqrt(1.0 / (3 * 16 * 16)));
  BOOST_TEST(patches.bound() == 2);
  BOOST_TEST(inits.at("class_token").constant() == 0);
  BOOST_TEST(inits.at("encoder.pos_embedding").normal_std() == 0.02);
  const std::string block = "encoder.layers.encoder_layer_11.";
  BOOST_TEST(inits.at(block + "ln_2.weight").constant() == 1);
  BOOST_TEST(inits.at(block + "self_attention.in_proj_weight").uniform_bound() ==
             std::sqrt(6.0 / (768 + 3 * 768)));
  BOOST_TEST(inits.at(block + "self_attention.in_proj_bias").constant() == 0);
  BOOST_TEST(inits.at(block + "self_attention.out_proj.weight").uniform_bound() ==
             1 / std::sqrt(768.0));
  BOOST_TEST(inits.at(block + "mlp.0.weight").uniform_bound() == std::sqrt(6.0 / (768 + 3072)));
  BOOST_TEST(inits.at(block + "mlp.3.bias").normal_std() == 1e-6);
  for (const char* name : {"heads.head.weight", "heads.head.bias"}) {
    BOOST_REQUIRE(inits.at(name).kind_case() == v1::Init::kConstant);
    BOOST_TEST(inits.at(name).constant() == 0);
  }
}

BOOST_AUTO_TEST_CASE(gpt2_begins_as_in_hugging_face) {
  v1::Model model;
  model.mutable_gpt2()->set_size(v1::Gpt2::SIZE_SMALL);
  for (const auto& [name, init] : inits_of(model)) BOOST_TEST_CONTEXT(name) {
      if (ends_with(name, "c_proj.weight")) {
        BOOST_TEST(init.normal_std() == 0.02 / std::sqrt(2.0 * 12));
      } else if (name.find("ln_") == std::string::npos && ends_with(name, ".weight")) {
        if (name != "lm_head.weight") BOOST_TEST(init.normal_std() == 0.02);
      } else {
        BOOST_REQUIRE(init.kind_case() == v1::Init::kConstant);
        BOOST_TEST(init.constant() == (ends_with(name, ".weight") ? 1 : 0));
      }
    }
}

BOOST_AUTO_TEST_CASE(vgg_begins_as_in_torchvision) {
  v1::Model model;
  model.mutable_vgg()->set_depth(11);
  model.mutable_vgg()->set_batch_norm(true);
  model.mutable_vgg()->set_num_classes(1000);
  const auto inits = inits_of(model);
  BOOST_TEST(inits.at("features.4.weight").normal_std() == std::sqrt(2.0 / (128 * 9)));
  BOOST_TEST(inits.at("features.4.bias").constant() == 0);
  BOOST_TEST(inits.at("features.5.weight").constant() == 1);
  BOOST_TEST(inits.at("classifier.0.weight").normal_std() == 0.01);
  BOOST_REQUIRE(inits.at("classifier.6.bias").kind_case() == v1::Init::kConstant);
  BOOST_TEST(inits.at("classifier.6.bias").constant() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp
