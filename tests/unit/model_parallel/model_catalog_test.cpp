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
      sum += *mp::element_count({p.shape().begin(), p.shape().end()});
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
  expect_error(list(R"(layers { name: "b" kind: "x"
                       parameters { name: "w" init { constant: 0 } }
                       buffers { name: "w" init { constant: 0 } } })"),
               "model.layers.layers[0].buffers[0].name", "'w'");
}

BOOST_AUTO_TEST_SUITE_END()
