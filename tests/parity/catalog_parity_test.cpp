// The model catalog lists the tensors of PyTorch's own models: names, shapes and order.
#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/model_catalog.hpp"
#include "parity/python.hpp"
#include "troupe/model_parallel/host_tensor.hpp"

using namespace troupe::mp;
using troupe::mp::test::run_python;

namespace {

/// By torchvision's and Hugging Face's names.
const std::map<std::string, std::string> configs = {
    {"resnet18", "resnet { depth: 18 num_classes: 1000 }"},
    {"resnet34", "resnet { depth: 34 num_classes: 1000 }"},
    {"resnet50", "resnet { depth: 50 num_classes: 1000 }"},
    {"resnet101", "resnet { depth: 101 num_classes: 1000 }"},
    {"resnet152", "resnet { depth: 152 num_classes: 1000 }"},
    {"resnext50_32x4d", "resnet { variant: VARIANT_RESNEXT50_32X4D num_classes: 1000 }"},
    {"resnext101_32x8d", "resnet { variant: VARIANT_RESNEXT101_32X8D num_classes: 1000 }"},
    {"resnext101_64x4d", "resnet { variant: VARIANT_RESNEXT101_64X4D num_classes: 1000 }"},
    {"wide_resnet50_2", "resnet { variant: VARIANT_WIDE_RESNET50_2 num_classes: 1000 }"},
    {"wide_resnet101_2", "resnet { variant: VARIANT_WIDE_RESNET101_2 num_classes: 1000 }"},
    {"vgg11", "vgg { depth: 11 num_classes: 1000 }"},
    {"vgg11_bn", "vgg { depth: 11 batch_norm: true num_classes: 1000 }"},
    {"vgg13", "vgg { depth: 13 num_classes: 1000 }"},
    {"vgg13_bn", "vgg { depth: 13 batch_norm: true num_classes: 1000 }"},
    {"vgg16", "vgg { depth: 16 num_classes: 1000 }"},
    {"vgg16_bn", "vgg { depth: 16 batch_norm: true num_classes: 1000 }"},
    {"vgg19", "vgg { depth: 19 num_classes: 1000 }"},
    {"vgg19_bn", "vgg { depth: 19 batch_norm: true num_classes: 1000 }"},
    {"vit_b_16", "vit { variant: VARIANT_B_16 num_classes: 1000 }"},
    {"vit_b_32", "vit { variant: VARIANT_B_32 num_classes: 1000 }"},
    {"vit_l_16", "vit { variant: VARIANT_L_16 num_classes: 1000 }"},
    {"vit_l_32", "vit { variant: VARIANT_L_32 num_classes: 1000 }"},
    {"vit_h_14", "vit { variant: VARIANT_H_14 num_classes: 1000 }"},
    {"gpt2", "gpt2 { size: SIZE_SMALL }"},
    {"gpt2-medium", "gpt2 { size: SIZE_MEDIUM }"},
    {"gpt2-large", "gpt2 { size: SIZE_LARGE }"},
    {"gpt2-xl", "gpt2 { size: SIZE_XL }"}};

using Lines = std::vector<std::string>;

/// By model, what Python printed of it.
std::map<std::string, Lines> lines_of_python() {
  Lines names;
  for (const auto& [name, config] : configs) names.push_back(name);
  std::map<std::string, Lines> lines;
  for (const std::string& line : run_python("model_tensors.py", names)) {
    const std::size_t space = line.find(' ');
    lines[line.substr(0, space)].push_back(line.substr(space + 1));
  }
  return lines;
}

std::string line_of(const char* kind, const v1::Parameter& tensor) {
  return std::string(kind) + " " + tensor.name() + " " +
         to_string(Shape{tensor.shape().begin(), tensor.shape().end()});
}

/// Tied parameters are their owner's once more, there and here.
Lines lines_of_catalog(const std::string& config) {
  v1::Model model;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(config, &model));
  const auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  Lines lines;
  for (const auto& layer : *layers)
    for (const auto& tensor : layer.parameters())
      if (tensor.tied_to().empty()) lines.push_back(line_of("parameter", tensor));
  for (const auto& layer : *layers)
    for (const auto& tensor : layer.buffers()) lines.push_back(line_of("buffer", tensor));
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(catalog_parity)

BOOST_AUTO_TEST_CASE(models_by_name_list_the_tensors_of_pytorch) {
  const auto expected = lines_of_python();
  BOOST_TEST(expected.size() == configs.size());
  for (const auto& [name, config] : configs) BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(lines_of_catalog(config) == expected.at(name), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
