#include "parity/small_models.hpp"

#include <google/protobuf/text_format.h>

#include <stdexcept>

namespace troupe::mp::test {
namespace {

/// Of the convolutions of VGG-11 with batch norm.
std::vector<std::string> biases_before_batch_norm() {
  std::vector<std::string> names;
  for (const int index : {0, 4, 8, 11, 15, 18, 22, 25})
    names.push_back("features." + std::to_string(index) + ".bias");
  return names;
}

std::vector<ParityModel> list_models() {
  const std::string bottlenecks =
      "resnet { blocks: [1, 1, 1, 1] block: BLOCK_BOTTLENECK num_classes: 10 ";
  const std::string vgg =
      "vgg { depth: 11 width_multiplier: 0.125 classifier_width: 32 dropout: 0 num_classes: 10 ";
  const std::string gpt2 =
      "gpt2 { layers: 2 heads: 2 width: 16 vocab_size: 50 context: 12 dropout: 0 ";
  return {{"small_resnext",
           bottlenecks + "groups: 32 width_per_group: 4 }",
           10,
           {3, 48, 48},
           "fc:0",
           0,
           "layer3"},
          {"small_wide_resnet",
           bottlenecks + "width_per_group: 128 }",
           10,
           {3, 48, 48},
           "fc:0",
           0,
           "layer2"},
          {"small_vgg", vgg + "}", 10, {3, 32, 32}, "classifier.6:0", 0, "features.8"},
          {"small_vgg_bn",
           vgg + "batch_norm: true }",
           10,
           {3, 32, 32},
           "classifier.6:0",
           0,
           "classifier.0",
           biases_before_batch_norm()},
          {"small_mlp",
           "mlp { in_features: 192 hidden_features: [20, 12] out_features: 10 "
           "activation: ACTIVATION_GELU }",
           10,
           {3, 8, 8},
           "6:0",
           0,
           "3"},
          {"small_vit",
           "vit { image_size: 32 patch_size: 8 layers: 2 heads: 2 width: 16 mlp_width: 40 "
           "num_classes: 10 }",
           10,
           {3, 32, 32},
           "heads:0",
           0,
           "encoder.layers.encoder_layer_1"},
          {"small_gpt2", gpt2 + "}", 50, {9}, "lm_head:0", 50, "transformer.h.1"},
          {"small_gpt2_untied",
           gpt2 + "untied_head: true }",
           50,
           {9},
           "lm_head:0",
           50,
           "transformer.wpe"}};
}

}  // namespace

ParityModel resnet_model(std::uint32_t depth, std::uint32_t classes, std::int64_t image) {
  ParityModel model;
  model.name = "resnet" + std::to_string(depth);
  model.config = "resnet { depth: " + std::to_string(depth) +
                 " num_classes: " + std::to_string(classes) + " }";
  model.classes = classes;
  model.inputs = {3, image, image};
  model.middle = "layer3";
  return model;
}

const std::vector<ParityModel>& small_models() {
  static const std::vector<ParityModel> models = list_models();
  return models;
}

const ParityModel& small_model(const std::string& name) {
  for (const auto& model : small_models())
    if (model.name == name) return model;
  throw std::runtime_error("no small model called " + name);
}

v1::Model config_of(const ParityModel& model) {
  v1::Model config;
  if (!google::protobuf::TextFormat::ParseFromString(model.config, &config))
    throw std::runtime_error("the config of " + model.name + " cannot be read");
  return config;
}

}  // namespace troupe::mp::test
