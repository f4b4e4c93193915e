// Weights written by Troupe load into PyTorch's model and mean the same there, and a published
// file of GPT-2 means the same here.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "core/random.hpp"
#include "core/state_split.hpp"
#include "jobs/job_setup.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

constexpr std::uint32_t samples = 3;

Plan prediction_plan(const ParityModel& model) {
  PlanRequest request;
  request.job = "predict";
  request.seed = 7;
  request.layers = must(list_layers(config_of(model)));
  request.nodes = {"here"};
  for (const std::string& first : {std::string(), model.middle}) {
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

/// Images or token ids.
HostTensor draw_inputs(const ParityModel& model) {
  Shape shape = model.inputs;
  shape.insert(shape.begin(), samples);
  const std::uint64_t key = stream_key(3, "inputs");
  if (model.vocabulary != 0) {
    HostTensor tokens{v1::DTYPE_INT64, shape, {}};
    const std::uint64_t count = must(element_count(shape));
    tokens.data = troupe::Blob::uninitialized(count * sizeof(std::int64_t));
    auto* ids = reinterpret_cast<std::int64_t*>(tokens.data.mutable_data());
    for (std::uint64_t i = 0; i < count; ++i)
      ids[i] = static_cast<std::int64_t>(index_at(key, i, model.vocabulary));
    return tokens;
  }
  v1::Parameter images;
  images.set_name("images");
  for (const std::int64_t n : shape) images.add_shape(n);
  images.mutable_init()->set_normal_std(1);
  return initial_tensor(images, 3, v1::DTYPE_FLOAT64);
}

std::vector<double> outputs_of(LocalPipeline& pipeline, const ParityModel& model,
                               const HostTensor& inputs) {
  MicroBatch batch;
  batch.kind = v1::Key::KIND_INFER;
  batch.samples = samples;
  LocalPipeline::Fields fields;
  fields["inputs"].tensor = inputs;
  return as_doubles(pipeline.forward(batch, fields).outputs.at(model.output).tensor);
}

/// As the driver does it: every stage gets what the file has for it.
void import_weights(LocalPipeline& pipeline, const Plan& plan, const TensorMap& weights) {
  for (auto& [stage, tensors] : must(split_state(plan, weights, true, "weights")))
    pipeline.stage(stage).import_state(std::move(tensors),
                                       [](troupe::Result<void> done) { BOOST_REQUIRE(done.ok()); });
}

void check_equal(const std::vector<double>& ours, const std::vector<double>& theirs) {
  BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    BOOST_TEST(std::abs(ours[i] - theirs[i]) <= 1e-9 * std::max(1.0, std::abs(theirs[i])));
}

void check_round_trip(const ParityModel& model) {
  const troupe::test::TemporaryDirectory directory;
  LocalPipeline pipeline(prediction_plan(model), libtorch_executor);
  TensorMap weights;
  for (auto& tensor : pipeline.export_state()) weights[tensor.name] = tensor.tensor;
  BOOST_REQUIRE(write_safetensors(directory.path() / "weights.safetensors", weights).ok());
  const HostTensor inputs = draw_inputs(model);
  BOOST_REQUIRE(
      write_safetensors(directory.path() / "inputs.safetensors", {{"inputs", inputs}}).ok());
  const auto ours = outputs_of(pipeline, model, inputs);

  run_python("load_weights.py",
             {directory.path().string(), model.name, std::to_string(model.classes)});
  const auto file = must(SafetensorsFile::open(directory.path() / "outputs.safetensors"));
  check_equal(ours, as_doubles(must(file.tensor("outputs"))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(resnet18_weights_load_strictly_in_torchvision) {
  check_round_trip(resnet_model(18));
}

BOOST_AUTO_TEST_CASE(resnet50_weights_load_strictly_in_torchvision) {
  check_round_trip(resnet_model(50));
}

BOOST_AUTO_TEST_CASE(weights_of_every_other_family_load_strictly_in_pytorch) {
  for (const auto& model : small_models()) BOOST_TEST_CONTEXT(model.name) {
      check_round_trip(model);
    }
}

BOOST_AUTO_TEST_CASE(a_published_file_of_gpt2_loads_as_it_is) {
  const ParityModel& model = small_model("small_gpt2");
  const troupe::test::TemporaryDirectory directory;
  run_python("published_gpt2.py", {directory.path().string(), model.name});
  const Plan plan = prediction_plan(model);
  const auto weights = must(read_weights(plan, directory.path() / "model.safetensors"));
  BOOST_TEST(weights.count("transformer.h.1.attn.c_attn.weight") == 1u);
  for (const auto& [name, tensor] : weights) BOOST_TEST(name.rfind("transformer.", 0) == 0u, name);

  LocalPipeline pipeline(plan, libtorch_executor);
  import_weights(pipeline, plan, weights);
  const auto expected = must(SafetensorsFile::open(directory.path() / "expected.safetensors"));
  check_equal(outputs_of(pipeline, model, must(expected.tensor("inputs"))),
              as_doubles(must(expected.tensor("outputs"))));
}
