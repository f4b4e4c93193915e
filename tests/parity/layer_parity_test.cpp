// Single layers against plain PyTorch in float64: outputs, input gradients, parameter gradients and
// running statistics, within 1e-12 in float64 and 1e-4 in float32.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include <google/protobuf/text_format.h>
#include <boost/test/unit_test.hpp>

#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "libtorch/executor.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

/// What layers.py wrote, computed once.
const SafetensorsFile& reference() {
  static const troupe::test::TemporaryDirectory directory;
  static const SafetensorsFile file = [] {
    const std::string path = (directory.path() / "layers.safetensors").string();
    run_python("layers.py", {path});
    return must(SafetensorsFile::open(path));
  }();
  return file;
}

/// A layer by itself, or an identity before a loss.
struct LayerCase {
  std::string name;
  v1::Layer layer;
  std::optional<v1::Loss> loss = {};
};

v1::Layer written(const std::string& name, const std::string& kind) {
  v1::Model model;
  auto* layer = model.mutable_layers()->add_layers();
  layer->set_name(name);
  layer->set_kind(kind);
  if (kind == "linear") {
    (*layer->mutable_attributes())["in_features"] = 7;
    (*layer->mutable_attributes())["out_features"] = 5;
  }
  return must(list_layers(model)).front();
}

v1::Layer of_resnet(std::uint32_t depth, const std::string& name, std::uint32_t in_channels = 3,
                    v1::ResNet::Stem stem = v1::ResNet::STEM_IMAGENET) {
  v1::Model model;
  auto* resnet = model.mutable_resnet();
  resnet->set_depth(depth);
  resnet->set_num_classes(10);
  resnet->set_in_channels(in_channels);
  resnet->set_stem(stem);
  const auto layers = must(list_layers(model));
  return *std::find_if(layers.begin(), layers.end(),
                       [&](const v1::Layer& layer) { return layer.name() == name; });
}

/// The layer `name` of a model that is written as text.
v1::Layer layer_of(const std::string& model, const std::string& name) {
  v1::Model config;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(model, &config));
  const auto layers = must(list_layers(config));
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const v1::Layer& layer) { return layer.name() == name; });
  BOOST_REQUIRE(found != layers.end());
  return *found;
}

/// A written layer with attributes: {{"stride", 2}, ...}.
v1::Layer written_with(const std::string& name, const std::string& kind,
                       const std::map<std::string, double>& attributes) {
  std::string text = "layers { layers { name: \"" + name + "\" kind: \"" + kind + "\" ";
  for (const auto& [key, value] : attributes)
    text += "attributes { key: \"" + key + "\" value: " + std::to_string(value) + " } ";
  return layer_of(text + "} }", name);
}

const std::string small_vit =
    "vit { image_size: 8 patch_size: 4 layers: 1 heads: 2 width: 12 mlp_width: 20 "
    "num_classes: 10 }";

/// `loss`: as in a job file.
LayerCase loss_case(const std::string& name, const std::string& loss) {
  LayerCase c{name, written("outputs", "identity"), v1::Loss()};
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(loss, &*c.loss));
  return c;
}

Plan plan_of(const LayerCase& c, v1::Precision precision) {
  PlanRequest request;
  request.job = "parity";
  request.layers = {c.layer};
  request.nodes = {"here"};
  request.stages.emplace_back();
  request.stages[0].set_node("here");
  request.stages[0].set_threads(1);
  request.loss = c.loss;
  request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  request.precision = precision;
  return must(make_plan(request));
}

HostTensor given(const LayerCase& c, const std::string& name) {
  return must(reference().tensor(c.name + "/" + name));
}

/// The layer on the inputs of the reference, under the names that it has for what it expects.
Tensors results_of(const LayerCase& c, v1::Precision precision) {
  LocalPipeline pipeline(plan_of(c, precision), libtorch_executor);
  TensorMap start;
  for (const auto* tensors : {&c.layer.parameters(), &c.layer.buffers()})
    for (const auto& tensor : *tensors) start[tensor.name()] = given(c, "start/" + tensor.name());
  pipeline.import_state(start);

  LocalPipeline::Fields fields;
  fields["inputs"].tensor = given(c, "inputs");
  fields["inputs"].requires_grad = is_floating(fields["inputs"].tensor.dtype);
  if (c.loss) fields["targets"].tensor = given(c, "targets");
  const auto samples = static_cast<std::uint32_t>(fields["inputs"].tensor.shape[0]);
  const auto batch = cut(0, samples, samples).front();
  const auto forward = pipeline.forward(batch, fields);
  const std::string output = c.layer.name() + ":0";
  std::map<std::string, Value> output_gradients;
  if (!c.loss) output_gradients[output].tensor = given(c, "output_gradient");
  const auto gradients = pipeline.backward(batch, output_gradients);

  Tensors results;
  results["output"] = c.loss ? std::vector<double>{forward.loss.loss}
                             : as_doubles(forward.outputs.at(output).tensor);
  if (fields["inputs"].requires_grad)
    results["input_gradient"] = as_doubles(gradients.at("field:inputs").tensor);
  for (const auto& gradient :
       static_cast<libtorch::LibtorchExecutor&>(pipeline.stage(0)).gradients())
    results["gradient/" + gradient.name] = as_doubles(gradient.tensor);
  for (const auto& tensor : pipeline.export_state())
    if (tensor.buffer) results["state/" + tensor.name] = as_doubles(tensor.tensor);
  return results;
}

void check(const LayerCase& c) {
  const std::string expected = c.name + "/expected/";
  const auto& names = reference().names();
  const auto count = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.rfind(expected, 0) == 0;
  });
  BOOST_TEST(count >= 2);
  for (const auto& [precision, bound] :
       {std::pair(v1::PRECISION_FLOAT64, 1e-12), std::pair(v1::PRECISION_FLOAT32, 1e-4)}) {
    const auto results = results_of(c, precision);
    BOOST_TEST(results.size() == static_cast<std::size_t>(count));
    double worst = 0;
    for (const auto& [name, numbers] : results) {
      const double error =
          relative_error(numbers, as_doubles(must(reference().tensor(expected + name))));
      BOOST_TEST(error <= bound, c.name << ", " << name << ": " << error);
      worst = std::max(worst, error);
    }
    BOOST_TEST_MESSAGE(c.name << ": largest relative error " << worst << ", bound " << bound);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_parity)

BOOST_AUTO_TEST_CASE(linear) { check({"linear", written("linear", "linear")}); }

BOOST_AUTO_TEST_CASE(relu) { check({"relu", written("relu", "relu")}); }

BOOST_AUTO_TEST_CASE(tanh) { check({"tanh", written("tanh", "tanh")}); }

BOOST_AUTO_TEST_CASE(gelu) { check({"gelu", written("gelu", "gelu")}); }

BOOST_AUTO_TEST_CASE(approximate_gelu) {
  check({"gelu_tanh", written_with("g", "gelu", {{"tanh_approximation", 1}})});
}

BOOST_AUTO_TEST_CASE(convolution) {
  check({"conv2d", written_with("c", "conv2d",
                                {{"in_channels", 6},
                                 {"out_channels", 10},
                                 {"kernel_size", 3},
                                 {"stride", 2},
                                 {"padding", 1},
                                 {"groups", 2}})});
}

BOOST_AUTO_TEST_CASE(written_batch_norm) {
  check({"batch_norm2d", written_with("n", "batch_norm2d", {{"channels", 5}})});
}

BOOST_AUTO_TEST_CASE(written_max_pool) {
  check({"max_pool2d",
         written_with("p", "max_pool2d", {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}})});
}

BOOST_AUTO_TEST_CASE(average_pool) {
  check({"adaptive_avg_pool2d",
         written_with("p", "adaptive_avg_pool2d", {{"height", 3}, {"width", 2}})});
}

BOOST_AUTO_TEST_CASE(layer_norm) {
  check({"layer_norm", written_with("l", "layer_norm", {{"features", 7}, {"epsilon", 1e-3}})});
}

BOOST_AUTO_TEST_CASE(embedding) {
  check({"embedding", written_with("e", "embedding", {{"rows", 5}, {"features", 7}})});
}

BOOST_AUTO_TEST_CASE(position_embedding) {
  check({"position_embedding",
         written_with("p", "position_embedding", {{"rows", 6}, {"features", 7}})});
}

BOOST_AUTO_TEST_CASE(grouped_bottleneck) {
  check({"grouped_bottleneck",
         layer_of("resnet { variant: VARIANT_RESNEXT50_32X4D num_classes: 10 }", "layer2.0")});
}

BOOST_AUTO_TEST_CASE(vgg_convolution) {
  check({"vgg_convolution",
         layer_of("vgg { depth: 11 width_multiplier: 0.125 num_classes: 10 }", "features.3")});
}

BOOST_AUTO_TEST_CASE(vit_embedding) { check({"vit_embedding", layer_of(small_vit, "embedding")}); }

BOOST_AUTO_TEST_CASE(vit_block) {
  check({"vit_block", layer_of(small_vit, "encoder.layers.encoder_layer_0")});
}

BOOST_AUTO_TEST_CASE(vit_head) { check({"vit_head", layer_of(small_vit, "heads")}); }

BOOST_AUTO_TEST_CASE(gpt2_block) {
  check({"gpt2_block",
         layer_of("gpt2 { layers: 1 heads: 3 width: 12 dropout: 0 }", "transformer.h.0")});
}

BOOST_AUTO_TEST_CASE(stem) { check({"stem", of_resnet(18, "stem")}); }

BOOST_AUTO_TEST_CASE(batch_norm) {
  check({"batch_norm", of_resnet(18, "stem", 64, v1::ResNet::STEM_SMALL)});
}

BOOST_AUTO_TEST_CASE(max_pool) { check({"max_pool", of_resnet(18, "stem", 64)}); }

BOOST_AUTO_TEST_CASE(basic_block) { check({"basic_block", of_resnet(18, "layer2.0")}); }

BOOST_AUTO_TEST_CASE(bottleneck) { check({"bottleneck", of_resnet(50, "layer2.0")}); }

BOOST_AUTO_TEST_CASE(head) { check({"head", of_resnet(18, "fc")}); }

BOOST_AUTO_TEST_CASE(mean_squared_error) { check(loss_case("mse", "mse {}")); }

BOOST_AUTO_TEST_CASE(mean_absolute_error) { check(loss_case("l1", "l1 {}")); }

BOOST_AUTO_TEST_CASE(huber) {
  check(loss_case("huber", "huber {}"));
  check(loss_case("huber_delta", "huber { delta: 0.25 }"));
}

BOOST_AUTO_TEST_CASE(binary_cross_entropy) {
  check(loss_case("bce", "bce_with_logits {}"));
  check(loss_case("bce_weights",
                  "bce_with_logits { pos_weight: [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, "
                  "2.5] }"));
  check(loss_case("bce_weight", "bce_with_logits { pos_weight: 2.5 }"));
}

BOOST_AUTO_TEST_CASE(cross_entropy) {
  check(loss_case("cross_entropy", "cross_entropy {}"));
  check(loss_case("cross_entropy_smoothed", "cross_entropy { label_smoothing: 0.1 }"));
  check(loss_case("cross_entropy_ignored", "cross_entropy {}"));
  check(loss_case("cross_entropy_ignore_index",
                  "cross_entropy { ignore_index: 3 label_smoothing: 0.2 }"));
}

BOOST_AUTO_TEST_CASE(cross_entropy_of_tokens) {
  check(loss_case("cross_entropy_tokens", "cross_entropy { label_smoothing: 0.1 }"));
}

BOOST_AUTO_TEST_CASE(cross_entropy_against_probabilities) {
  check(loss_case("cross_entropy_probabilities", "cross_entropy { label_smoothing: 0.1 }"));
  check(loss_case("cross_entropy_token_probabilities", "cross_entropy {}"));
}

BOOST_AUTO_TEST_SUITE_END()
