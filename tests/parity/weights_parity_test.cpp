// Weights written by Troupe load into torchvision's model and mean the same there.
#include <boost/test/unit_test.hpp>

#include <cmath>

#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "core/random.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

Plan prediction_plan(std::uint32_t depth, std::uint32_t classes) {
  v1::Model model;
  model.mutable_resnet()->set_depth(depth);
  model.mutable_resnet()->set_num_classes(classes);
  PlanRequest request;
  request.job = "predict";
  request.seed = 7;
  request.layers = must(list_layers(model));
  request.nodes = {"here"};
  for (const std::string first : {"", "layer3"}) {
    v1::Stage stage;
    stage.set_node("here");
    stage.set_threads(1);
    stage.set_first_layer(first);
    request.stages.push_back(stage);
  }
  request.train = false;
  request.precision = v1::PRECISION_FLOAT64;
  return must(make_plan(request));
}

HostTensor random_images(std::int64_t count, std::int64_t size) {
  v1::Parameter images;
  images.set_name("images");
  for (const std::int64_t n : {count, std::int64_t{3}, size, size}) images.add_shape(n);
  images.mutable_init()->set_normal_std(1);
  return initial_tensor(images, 3, v1::DTYPE_FLOAT64);
}

void check_round_trip(std::uint32_t depth) {
  constexpr std::uint32_t classes = 10;
  const troupe::test::TemporaryDirectory directory;
  LocalPipeline pipeline(prediction_plan(depth, classes), libtorch_executor);
  TensorMap weights;
  for (auto& tensor : pipeline.export_state()) weights[tensor.name] = tensor.tensor;
  BOOST_REQUIRE(write_safetensors(directory.path() / "weights.safetensors", weights).ok());
  const HostTensor images = random_images(3, 64);
  BOOST_REQUIRE(
      write_safetensors(directory.path() / "inputs.safetensors", {{"inputs", images}}).ok());

  MicroBatch batch;
  batch.kind = v1::Key::KIND_INFER;
  batch.samples = 3;
  LocalPipeline::Fields fields;
  fields["inputs"].tensor = images;
  const auto ours = as_doubles(pipeline.forward(batch, fields).outputs.at("fc:0").tensor);

  run_python("load_weights.py",
             {directory.path().string(), std::to_string(depth), std::to_string(classes)});
  const auto file = must(SafetensorsFile::open(directory.path() / "outputs.safetensors"));
  const auto theirs = as_doubles(must(file.tensor("outputs")));
  BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    BOOST_TEST(std::abs(ours[i] - theirs[i]) <= 1e-9 * std::max(1.0, std::abs(theirs[i])));
}

}  // namespace

BOOST_AUTO_TEST_CASE(resnet18_weights_load_strictly_in_torchvision) { check_round_trip(18); }

BOOST_AUTO_TEST_CASE(resnet50_weights_load_strictly_in_torchvision) { check_round_trip(50); }
