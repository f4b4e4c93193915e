#include "core/model_catalog.hpp"

#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "troupe/model_parallel/host_tensor.hpp"

namespace mp = troupe::mp;
using mp::v1::Layer;

namespace {

troupe::Result<std::vector<Layer>> parse(const std::string& text) {
  mp::v1::Model model;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return mp::list_layers(model);
}

std::vector<Layer> layers_of(const std::string& text) {
  auto layers = parse(text);
  if (!layers.ok()) BOOST_FAIL(layers.error().to_string());
  return *layers;
}

std::uint64_t parameter_count(const std::vector<Layer>& layers) {
  std::uint64_t sum = 0;
  for (const auto& layer : layers)
    for (const auto& p : layer.parameters())
      if (p.tied_to().empty()) sum += *mp::element_count({p.shape().begin(), p.shape().end()});
  return sum;
}

const Layer& find(const std::vector<Layer>& layers, const std::string& name) {
  for (const auto& layer : layers)
    if (layer.name() == name) return layer;
  BOOST_FAIL("no layer " + name);
  return layers.front();
}

std::string shape_of(const Layer& layer, const std::string& name) {
  for (const auto& p : layer.parameters())
    if (p.name() == name) return mp::to_string(mp::Shape{p.shape().begin(), p.shape().end()});
  return "no " + name;
}

void expect_error(const std::string& text, const std::string& where, const std::string& what) {
  const auto result = parse(text);
  BOOST_REQUIRE_MESSAGE(!result.ok(), text);
  BOOST_TEST((result.error().code == troupe::ErrorCode::bad_input));
  BOOST_TEST(result.error().where == where);
  BOOST_TEST(result.error().what.find(what) != std::string::npos, result.error().to_string());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model_catalog)

BOOST_AUTO_TEST_CASE(residual_networks_have_the_published_numbers_of_parameters) {
  const std::map<int, std::pair<std::uint64_t, std::size_t>> known = {{18, {11689512, 10}},
                                                                      {34, {21797672, 18}},
                                                                      {50, {25557032, 18}},
                                                                      {101, {44549160, 35}},
                                                                      {152, {60192808, 52}}};
  for (const auto& [depth, expected] : known) {
    const auto layers =
        layers_of("resnet { depth: " + std::to_string(depth) + " num_classes: 1000 }");
    BOOST_TEST(parameter_count(layers) == expected.first);
    BOOST_TEST(layers.size() == expected.second);
  }
}

BOOST_AUTO_TEST_CASE(models_by_name_have_the_published_numbers_of_parameters) {
  // torchvision's documentation, and the sizes of the published checkpoints of GPT-2.
  const std::map<std::string, std::uint64_t> known = {
      {"resnet { variant: VARIANT_RESNEXT50_32X4D num_classes: 1000 }", 25028904},
      {"resnet { variant: VARIANT_RESNEXT101_32X8D num_classes: 1000 }", 88791336},
      {"resnet { variant: VARIANT_RESNEXT101_64X4D num_classes: 1000 }", 83455272},
      {"resnet { variant: VARIANT_WIDE_RESNET50_2 num_classes: 1000 }", 68883240},
      {"resnet { variant: VARIANT_WIDE_RESNET101_2 num_classes: 1000 }", 126886696},
      {"vgg { depth: 11 num_classes: 1000 }", 132863336},
      {"vgg { depth: 11 batch_norm: true num_classes: 1000 }", 132868840},
      {"vgg { depth: 13 num_classes: 1000 }", 133047848},
      {"vgg { depth: 16 num_classes: 1000 }", 138357544},
      {"vgg { depth: 16 batch_norm: true num_classes: 1000 }", 138365992},
      {"vgg { depth: 19 num_classes: 1000 }", 143667240},
      {"vit { variant: VARIANT_B_16 num_classes: 1000 }", 86567656},
      {"vit { variant: VARIANT_B_32 num_classes: 1000 }", 88224232},
      {"vit { variant: VARIANT_L_16 num_classes: 1000 }", 304326632},
      {"vit { variant: VARIANT_L_32 num_classes: 1000 }", 306535400},
      {"vit { variant: VARIANT_H_14 num_classes: 1000 }", 632045800},
      {"gpt2 { size: SIZE_SMALL }", 124439808},
      {"gpt2 { size: SIZE_MEDIUM }", 354823168},
      {"gpt2 { size: SIZE_LARGE }", 774030080},
      {"gpt2 { size: SIZE_XL }", 1557611200}};
  for (const auto& [model, parameters] : known)
    BOOST_TEST(parameter_count(layers_of(model)) == parameters, model);
}

BOOST_AUTO_TEST_CASE(layers_come_in_order_with_kinds_and_attributes) {
  const auto layers = layers_of("resnet { depth: 18 num_classes: 10 }");
  std::vector<std::string> names, kinds;
  for (const auto& layer : layers) {
    names.push_back(layer.name());
    kinds.push_back(layer.kind());
    BOOST_TEST(layer.outputs() == 1u);
  }
  const std::vector<std::string> expected = {"stem",     "layer1.0", "layer1.1", "layer2.0",
                                             "layer2.1", "layer3.0", "layer3.1", "layer4.0",
                                             "layer4.1", "fc"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  BOOST_TEST(kinds.front() == "resnet.stem");
  BOOST_TEST(kinds[1] == "resnet.basic_block");
  BOOST_TEST(kinds.back() == "resnet.head");
  BOOST_TEST(find(layers, "stem").attributes().at("small") == 0.0);
  BOOST_TEST(find(layers, "layer1.0").attributes().at("stride") == 1.0);
  BOOST_TEST(find(layers, "layer2.0").attributes().at("stride") == 2.0);
  BOOST_TEST(find(layers, "layer2.1").attributes().at("stride") == 1.0);
}

BOOST_AUTO_TEST_CASE(the_small_stem_has_a_3x3_convolution) {
  const auto layers =
      layers_of("resnet { depth: 18 num_classes: 10 stem: STEM_SMALL in_channels: 1 }");
  BOOST_TEST(shape_of(layers.front(), "conv1.weight") == "[64, 1, 3, 3]");
  BOOST_TEST(layers.front().attributes().at("small") == 1.0);
}

BOOST_AUTO_TEST_CASE(the_width_multiplier_scales_every_layer) {
  const auto half = layers_of("resnet { depth: 50 num_classes: 10 width_multiplier: 0.5 }");
  BOOST_TEST(shape_of(half.front(), "conv1.weight") == "[32, 3, 7, 7]");
  BOOST_TEST(shape_of(find(half, "layer4.2"), "layer4.2.conv3.weight") == "[1024, 256, 1, 1]");
  BOOST_TEST(shape_of(half.back(), "fc.weight") == "[10, 1024]");
  const auto thin = layers_of("resnet { depth: 18 num_classes: 2 width_multiplier: 0.001 }");
  BOOST_TEST(shape_of(thin.front(), "conv1.weight") == "[1, 3, 7, 7]");
}

BOOST_AUTO_TEST_CASE(blocks_can_be_written_out) {
  const auto basic = layers_of("resnet { num_classes: 10 blocks: [3, 3, 3] block: BLOCK_BASIC }");
  BOOST_TEST(basic.size() == 11u);
  BOOST_TEST(shape_of(basic.back(), "fc.weight") == "[10, 256]");
  BOOST_TEST(shape_of(find(basic, "layer1.0"), "layer1.0.downsample.0.weight") ==
             "no layer1.0.downsample.0.weight");
  const auto bottleneck = layers_of("resnet { num_classes: 10 blocks: 1 block: BLOCK_BOTTLENECK }");
  BOOST_TEST(shape_of(find(bottleneck, "layer1.0"), "layer1.0.downsample.0.weight") ==
             "[256, 64, 1, 1]");
}

BOOST_AUTO_TEST_CASE(initial_values_follow_torchvision) {
  const auto layers = layers_of("resnet { depth: 50 num_classes: 1000 }");
  const auto& stem = layers.front();
  BOOST_TEST(stem.parameters(0).init().normal_std() == std::sqrt(2.0 / (64 * 49)));
  BOOST_TEST(stem.parameters(1).init().constant() == 1.0);
  BOOST_TEST(stem.parameters(2).init().constant() == 0.0);
  BOOST_TEST(stem.buffers(0).init().constant() == 0.0);
  BOOST_TEST(stem.buffers(1).init().constant() == 1.0);
  BOOST_TEST(stem.buffers(2).integer());
  const auto& head = layers.back();
  BOOST_TEST(head.parameters(0).init().uniform_bound() == 1.0 / std::sqrt(2048.0));
  BOOST_TEST(head.parameters(1).init().uniform_bound() == 1.0 / std::sqrt(2048.0));
}

BOOST_AUTO_TEST_CASE(errors_name_the_field) {
  expect_error("", "model", "no kind");
  expect_error("resnet { num_classes: 10 }", "model.resnet.depth", "no depth");
  expect_error("resnet { depth: 19 num_classes: 10 }", "model.resnet.depth", "19");
  expect_error("resnet { depth: 18 }", "model.resnet.num_classes", "no classes");
  expect_error("resnet { depth: 18 num_classes: 10 blocks: 2 }", "model.resnet.blocks", "beside");
  expect_error("resnet { depth: 18 num_classes: 10 block: BLOCK_BASIC }", "model.resnet.block",
               "beside");
  expect_error("resnet { num_classes: 10 blocks: 2 }", "model.resnet.block", "missing");
  expect_error("resnet { num_classes: 10 blocks: [2, 0] block: BLOCK_BASIC }",
               "model.resnet.blocks[1]", "0 blocks");
  expect_error("resnet { depth: 18 num_classes: 10 width_multiplier: -1 }",
               "model.resnet.width_multiplier", "positive");
  expect_error("resnet { depth: 18 num_classes: 10 width_multiplier: nan }",
               "model.resnet.width_multiplier", "positive");
  expect_error("resnet { depth: 18 num_classes: 10 width_multiplier: 1e9 }",
               "model.resnet.width_multiplier", "channels");
}

BOOST_AUTO_TEST_CASE(written_layers_pass_through_and_linear_ones_are_completed) {
  const auto layers = layers_of(R"(layers {
    layers { name: "a" kind: "linear"
             attributes { key: "in_features" value: 4 } attributes { key: "out_features" value: 3 } }
    layers { name: "b" kind: "relu" }
    layers { name: "c" kind: "linear" reads { layer: "a" } attributes { key: "bias" value: 0 }
             attributes { key: "in_features" value: 3 } attributes { key: "out_features" value: 2 } }
    layers { name: "d" kind: "linear"
             parameters { name: "w" shape: [2, 2] init { constant: 1 } } } })");
  BOOST_REQUIRE(layers.size() == 4u);
  BOOST_TEST(shape_of(layers[0], "a.weight") == "[3, 4]");
  BOOST_TEST(shape_of(layers[0], "a.bias") == "[3]");
  BOOST_TEST(layers[0].parameters(1).init().uniform_bound() == 0.5);
  BOOST_TEST(layers[1].parameters_size() == 0);
  BOOST_TEST(layers[1].outputs() == 1u);
  BOOST_TEST(layers[2].parameters_size() == 1);
  BOOST_TEST(layers[3].parameters_size() == 1);
}

BOOST_AUTO_TEST_CASE(layers_of_other_models_have_the_names_of_their_modules) {
  const auto names_of = [](const std::string& text) {
    std::string names;
    for (const auto& layer : layers_of(text)) names += (names.empty() ? "" : " ") + layer.name();
    return names;
  };
  BOOST_TEST(names_of("vgg { depth: 11 num_classes: 10 }") ==
             "features.0 features.3 features.6 features.8 features.11 features.13 features.16 "
             "features.18 avgpool flatten classifier.0 classifier.1 classifier.2 classifier.3 "
             "classifier.4 classifier.5 classifier.6");
  BOOST_TEST(names_of("vgg { depth: 11 batch_norm: true num_classes: 10 }")
                 .find("features.0 features.4 features.8 features.11") == 0u);
  BOOST_TEST(names_of("mlp { in_features: 6 hidden_features: [5, 4] out_features: 3 }") ==
             "flatten 0 1 2 3 4 5 6");
  BOOST_TEST(names_of("vit { patch_size: 16 layers: 2 heads: 1 width: 8 num_classes: 10 }") ==
             "embedding encoder.layers.encoder_layer_0 encoder.layers.encoder_layer_1 encoder.ln "
             "heads");
  BOOST_TEST(names_of("gpt2 { layers: 2 heads: 1 width: 8 }") ==
             "transformer.wte transformer.wpe transformer.drop transformer.h.0 transformer.h.1 "
             "transformer.ln_f lm_head");
}

BOOST_AUTO_TEST_CASE(the_rates_of_dropout_are_where_the_models_have_it) {
  const auto rate = [](const std::string& model, const std::string& layer,
                       const std::string& attribute) {
    return find(layers_of(model), layer).attributes().at(attribute);
  };
  BOOST_TEST(rate("vgg { depth: 11 num_classes: 10 }", "classifier.2", "rate") == 0.5);
  BOOST_TEST(rate("vgg { depth: 11 num_classes: 10 dropout: 0 }", "classifier.5", "rate") == 0);
  BOOST_TEST(rate("mlp { in_features: 6 hidden_features: 5 out_features: 3 dropout: 0.2 }", "2",
                  "rate") == 0.2);
  BOOST_TEST(rate("gpt2 { layers: 1 heads: 1 width: 8 }", "transformer.drop", "rate") == 0.1);
  BOOST_TEST(
      rate("gpt2 { layers: 1 heads: 1 width: 8 dropout: 0 }", "transformer.h.0", "dropout") == 0);
  const std::string vit =
      "vit { patch_size: 16 layers: 3 heads: 1 width: 8 num_classes: 10 drop_path: 0.4 }";
  for (const int block : {0, 1, 2})
    BOOST_TEST(rate(vit, "encoder.layers.encoder_layer_" + std::to_string(block), "drop_path") ==
               0.4 * block / 2);
}

BOOST_AUTO_TEST_CASE(the_head_of_gpt2_is_tied_to_its_token_embedding) {
  const auto tied = layers_of("gpt2 { layers: 1 heads: 1 width: 8 vocab_size: 20 }").back();
  BOOST_TEST(tied.parameters(0).name() == "lm_head.weight");
  BOOST_TEST(tied.parameters(0).tied_to() == "transformer.wte.weight");
  BOOST_TEST(!tied.parameters(0).has_init());
  BOOST_TEST(shape_of(tied, "lm_head.weight") == "[20, 8]");
  const auto own =
      layers_of("gpt2 { layers: 1 heads: 1 width: 8 vocab_size: 20 untied_head: true }").back();
  BOOST_TEST(own.parameters(0).tied_to().empty());
  BOOST_TEST(own.parameters(0).init().normal_std() == 0.02);
}

BOOST_AUTO_TEST_CASE(errors_of_other_models_name_the_field) {
  const std::string bottleneck = "resnet { num_classes: 10 blocks: 1 block: BLOCK_BOTTLENECK ";
  expect_error("resnet { depth: 50 variant: VARIANT_WIDE_RESNET50_2 num_classes: 10 }",
               "model.resnet.variant", "beside");
  expect_error("resnet { depth: 18 groups: 2 num_classes: 10 }", "model.resnet.groups", "basic");
  expect_error("resnet { depth: 34 width_per_group: 128 num_classes: 10 }",
               "model.resnet.width_per_group", "basic");
  expect_error(bottleneck + "groups: 4096 width_per_group: 4096 }", "model.resnet.width_per_group",
               "channels");
  expect_error(bottleneck + "width_multiplier: 0.01 width_per_group: 1 }",
               "model.resnet.width_per_group", "no channels");
  expect_error("vgg { depth: 12 num_classes: 10 }", "model.vgg.depth", "12");
  expect_error("vgg { depth: 11 }", "model.vgg.num_classes", "no classes");
  expect_error("vgg { depth: 11 num_classes: 10 dropout: 1 }", "model.vgg.dropout", "probability");
  expect_error("vgg { depth: 11 num_classes: 10 width_multiplier: nan }",
               "model.vgg.width_multiplier", "positive");
  expect_error("mlp { out_features: 2 }", "model.mlp.in_features", "no features");
  expect_error("mlp { in_features: 2 hidden_features: [3, 0] out_features: 2 }",
               "model.mlp.hidden_features[1]", "without features");
  expect_error("vit { layers: 1 heads: 1 width: 8 num_classes: 10 }", "model.vit.patch_size",
               "missing");
  expect_error("vit { variant: VARIANT_B_16 layers: 1 num_classes: 10 }", "model.vit.variant",
               "beside");
  expect_error("vit { variant: VARIANT_B_16 image_size: 100 num_classes: 10 }",
               "model.vit.image_size", "100");
  expect_error("vit { patch_size: 16 layers: 1 heads: 3 width: 8 num_classes: 10 }",
               "model.vit.heads", "3 heads");
  expect_error("vit { variant: VARIANT_B_16 num_classes: 10 drop_path: 1 }", "model.vit.drop_path",
               "probability");
  expect_error("gpt2 { layers: 1 heads: 1 }", "model.gpt2.width", "missing");
  expect_error("gpt2 { size: SIZE_XL width: 8 }", "model.gpt2.size", "beside");
  expect_error("gpt2 { layers: 1 heads: 3 width: 8 }", "model.gpt2.heads", "3 heads");
  expect_error("gpt2 { size: SIZE_XL dropout: -0.5 }", "model.gpt2.dropout", "probability");
}

BOOST_AUTO_TEST_CASE(written_layers_of_known_kinds_are_completed) {
  const auto layers = layers_of(R"(layers {
    layers { name: "c" kind: "conv2d" attributes { key: "in_channels" value: 6 }
             attributes { key: "out_channels" value: 4 } attributes { key: "kernel_size" value: 3 }
             attributes { key: "groups" value: 2 } }
    layers { name: "n" kind: "batch_norm2d" attributes { key: "channels" value: 4 } }
    layers { name: "l" kind: "layer_norm" attributes { key: "features" value: 5 } }
    layers { name: "e" kind: "embedding" attributes { key: "rows" value: 7 }
             attributes { key: "features" value: 5 } reads { field: "inputs" } }
    layers { name: "p" kind: "position_embedding" attributes { key: "rows" value: 9 }
             attributes { key: "features" value: 5 } } })");
  BOOST_TEST(shape_of(layers[0], "c.weight") == "[4, 3, 3, 3]");
  BOOST_TEST(shape_of(layers[0], "c.bias") == "[4]");
  // Conv2d: uniform within 1 / sqrt(inputs of a group * kernel * kernel).
  BOOST_TEST(layers[0].parameters(0).init().uniform_bound() == 1 / std::sqrt(27.0));
  BOOST_TEST(layers[1].parameters_size() == 2);
  BOOST_TEST(layers[1].buffers_size() == 3);
  BOOST_TEST(shape_of(layers[2], "l.bias") == "[5]");
  BOOST_TEST(shape_of(layers[3], "e.weight") == "[7, 5]");
  BOOST_TEST(layers[3].parameters(0).init().normal_std() == 1.0);
  BOOST_TEST(shape_of(layers[4], "p.weight") == "[9, 5]");
  expect_error(R"(layers { layers { name: "c" kind: "conv2d"
                  attributes { key: "in_channels" value: 6 } attributes { key: "groups" value: 4 }
                  attributes { key: "out_channels" value: 4 }
                  attributes { key: "kernel_size" value: 3 } } })",
               "model.layers.layers[0].attributes", "multiples");
  expect_error(R"(layers { layers { name: "l" kind: "layer_norm" } })",
               "model.layers.layers[0].attributes", "features");
}

BOOST_AUTO_TEST_CASE(tied_parameters_are_checked) {
  const std::string owner = R"(layers { name: "a" kind: "x"
    parameters { name: "a.w" shape: [2, 3] init { constant: 1 } }
    buffers { name: "a.b" shape: [2, 3] init { constant: 1 } } } )";
  const auto with = [&](const std::string& tied) {
    return "layers { " + owner + R"(layers { name: "b" kind: "x" )" + tied + " } }";
  };
  const std::string good = R"(parameters { name: "b.w" shape: [2, 3] tied_to: "a.w" } )";
  BOOST_TEST(layers_of(with(good))[1].parameters(0).tied_to() == "a.w");
  const std::string path = "model.layers.layers[1].parameters[0].";
  expect_error(with(R"(parameters { name: "b.w" shape: [2, 3] tied_to: "c.w" })"), path + "tied_to",
               "'c.w'");
  expect_error(with(R"(parameters { name: "b.w" shape: [2, 3] tied_to: "b.w" })"), path + "tied_to",
               "no earlier layer");
  expect_error(with(R"(parameters { name: "b.w" shape: [2, 3] tied_to: "a.b" })"), path + "tied_to",
               "no earlier layer");
  expect_error(with(R"(parameters { name: "b.w" shape: [3, 2] tied_to: "a.w" })"), path + "shape",
               "[3, 2]");
  expect_error(with(R"(parameters { name: "b.w" shape: [2, 3] tied_to: "a.w" integer: true })"),
               path + "integer", "type");
  expect_error(with(R"(parameters { name: "b.w" shape: [2, 3] tied_to: "a.w"
                                    init { constant: 0 } })"),
               path + "init", "initial value");
  expect_error(with(R"(buffers { name: "b.b" shape: [2, 3] tied_to: "a.w" })"),
               "model.layers.layers[1].buffers[0].tied_to", "is tied");
  expect_error("layers { " + owner + R"(layers { name: "b" kind: "x" )" + good +
                   R"(} layers { name: "c" kind: "x"
                         parameters { name: "c.w" shape: [2, 3] tied_to: "b.w" } } })",
               "model.layers.layers[2].parameters[0].tied_to", "tied itself");
}

BOOST_AUTO_TEST_CASE(written_layers_are_checked) {
  const std::string a = R"(layers { name: "a" kind: "relu" } )";
  const auto list = [](const std::string& text) { return "layers { " + text + " }"; };
  expect_error("layers {}", "model.layers", "without layers");
  expect_error(list(R"(layers { kind: "relu" })"), "model.layers.layers[0].name", "without a name");
  expect_error(list(R"(layers { name: "a" })"), "model.layers.layers[0].kind", "'a'");
  expect_error(list(a + a), "model.layers.layers[1].name", "'a'");
  expect_error(list(R"(layers { name: "loss" kind: "relu" })"), "model.layers.layers[0].name",
               "loss");
  expect_error(list(R"(layers { name: "a" kind: "loss.mse" })"), "model.layers.layers[0].kind",
               "is a loss");
  expect_error(list(a + R"(layers { name: "b" kind: "relu" reads { layer: "c" } })"),
               "model.layers.layers[1].reads[0].layer", "\"c\"");
  expect_error(list(a + R"(layers { name: "b" kind: "relu" reads { layer: "b" } })"),
               "model.layers.layers[1].reads[0].layer", "\"b\"");
  expect_error(list(a + R"(layers { name: "b" kind: "relu" reads { layer: "a" slot: 1 } })"),
               "model.layers.layers[1].reads[0].slot", "has only 1");
  expect_error(list(R"(layers { name: "b" kind: "relu" reads {} })"),
               "model.layers.layers[0].reads[0]", "either");
  expect_error(list(R"(layers { name: "b" kind: "linear" })"), "model.layers.layers[0].attributes",
               "in_features");
  expect_error(list(R"(layers { name: "b" kind: "linear"
                       attributes { key: "in_features" value: 1.5 } })"),
               "model.layers.layers[0].attributes", "positive integer");
  expect_error(list(R"(layers { name: "b" kind: "x"
                       parameters { name: "w" shape: -1 init { constant: 0 } } })"),
               "model.layers.layers[0].parameters[0].shape", "'w'");
  expect_error(list(R"(layers { name: "b" kind: "x" parameters { name: "w" shape: 1 } })"),
               "model.layers.layers[0].parameters[0].init", "'w'");
  expect_error(list(R"(layers { name: "b" kind: "x" parameters {
                       name: "w" shape: 1 init { truncated_normal { std: 1 } } } })"),
               "model.layers.layers[0].parameters[0].init.truncated_normal", "'w'");
  expect_error(list(R"(layers { name: "b" kind: "x"
                       parameters { name: "w" init { constant: 0 } }
                       buffers { name: "w" init { constant: 0 } } })"),
               "model.layers.layers[0].buffers[0].name", "'w'");
}

BOOST_AUTO_TEST_SUITE_END()
