// Tied weights and bfloat16 against plain PyTorch: a perceptron in which three layers share one
// weight, trained for three steps with momentum and clipping, whole and cut into stages.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "core/gradient_norm.hpp"
#include "core/plan.hpp"
#include "core/state_split.hpp"
#include "libtorch/executor.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"
#include "support/libtorch/stage.hpp"
#include "support/local_pipeline.hpp"

namespace troupe::mp::test {
namespace {

constexpr std::uint32_t batch = 7;
constexpr std::uint32_t steps = 3;

/// The files of sequential.py.
class Files {
 public:
  Files() { run_python("sequential.py", {directory_.path().string()}); }
  SafetensorsFile open(const std::string& name) const {
    return must(SafetensorsFile::open(directory_.path() / (name + ".safetensors")));
  }

 private:
  troupe::test::TemporaryDirectory directory_;
};

const Files& files() {
  static const Files files;
  return files;
}

v1::Layer layer(const std::string& name, const std::string& kind) {
  v1::Layer layer;
  layer.set_name(name);
  layer.set_kind(kind);
  return layer;
}

v1::Layer linear(const std::string& name, std::int64_t outputs, const std::string& tied_to = {}) {
  auto config = layer(name, "linear");
  auto* weight = config.add_parameters();
  weight->set_name(name + ".weight");
  weight->add_shape(outputs);
  weight->add_shape(12);
  weight->set_tied_to(tied_to);
  auto* bias = config.add_parameters();
  bias->set_name(name + ".bias");
  bias->add_shape(outputs);
  return config;
}

Plan plan_of(const std::vector<std::string>& cuts, v1::Precision precision) {
  PlanRequest request;
  request.job = "parity";
  request.layers = {linear("a", 12),    layer("b", "tanh"),          linear("c", 12, "a.weight"),
                    layer("d", "relu"), linear("e", 12, "a.weight"), linear("f", 5)};
  request.nodes = {"here"};
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    v1::Stage stage;
    stage.set_node("here");
    stage.set_threads(1);
    if (i > 0) stage.set_first_layer(cuts[i - 1]);
    request.stages.push_back(stage);
  }
  request.loss.emplace().mutable_cross_entropy();
  auto* sgd = request.optimizer.emplace().mutable_sgd();
  sgd->set_lr(0.2);
  sgd->set_momentum(0.9);
  request.precision = precision;
  return must(make_plan(request));
}

void import_start(LocalPipeline& pipeline, const Plan& plan) {
  TensorMap start;
  const auto file = files().open("start");
  for (const auto& name : file.names()) start[name] = must(file.tensor(name));
  BOOST_TEST(start.count("c.weight") == 0u);
  for (auto& [stage, tensors] : must(split_state(plan, start, true, "start")))
    expect_ok(result_of<void>([&, s = stage](auto done) {
      pipeline.stage(s).import_state(std::move(tensors), std::move(done));
    }));
}

Tensors train(const std::vector<std::string>& cuts, v1::Precision precision) {
  const Plan plan = plan_of(cuts, precision);
  LocalPipeline pipeline(plan, libtorch_executor);
  import_start(pipeline, plan);
  const auto data = files().open("data");
  Tensors results;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::string suffix = "/" + std::to_string(step);
    double loss = 0;
    for (const auto& part : cut(step, batch, 3)) {
      LocalPipeline::Fields fields;
      const auto begin = static_cast<std::int64_t>(step * batch + part.first_sample);
      for (const std::string name : {"inputs", "targets"})
        fields[name].tensor = must(data.tensor(name)).rows(begin, begin + part.samples);
      loss += pipeline.forward(part, fields).loss.loss * part.weight;
      pipeline.backward(part);
    }
    results["loss" + suffix] = {loss};
    const double norm = pipeline.gradient_norm().norm();
    results["norm" + suffix] = {norm};
    pipeline.update({{0.2}, clip_factor(norm, 1.0)});
    for (const auto& tensor : pipeline.export_state())
      results["state" + suffix + "/" + tensor.name] = as_doubles(tensor.tensor);
  }
  return results;
}

std::vector<double> expected(const std::string& mode, const std::string& name) {
  static const auto file = files().open("results");
  return as_doubles(must(file.tensor(mode + "/" + name)));
}

const std::vector<std::vector<std::string>> cuts{
    {}, {"c"}, {"e"}, {"b", "d"}, {"b", "c", "d", "e", "f", "loss"}};

}  // namespace

BOOST_AUTO_TEST_CASE(tied_weights_train_as_in_pytorch_wherever_they_are_cut) {
  const auto whole = train({}, v1::PRECISION_FLOAT64);
  BOOST_TEST(whole.size() == steps * (2u + 6u));
  for (const auto& [name, numbers] : whole) {
    const bool first = name.find("/0") != std::string::npos;
    BOOST_TEST(relative_error(numbers, expected("float64", name)) <= (first ? 1e-12 : 1e-9), name);
  }
  for (std::uint32_t step = 0; step < steps; ++step)  // clipping takes part
    BOOST_TEST(whole.at("norm/" + std::to_string(step))[0] > 1.0);
  for (const auto& cut : cuts) BOOST_TEST((train(cut, v1::PRECISION_FLOAT64) == whole));
}

BOOST_AUTO_TEST_CASE(bfloat16_computes_what_autocast_computes_between_rounded_boundaries) {
  const auto whole = train({}, v1::PRECISION_BFLOAT16);
  // The same roundings to bfloat16 in the same places; what is left is float32's.
  for (const auto& [name, numbers] : whole)
    BOOST_TEST(relative_error(numbers, expected("bfloat16", name)) <= 1e-5, name);
  for (const auto& cut : cuts) BOOST_TEST((train(cut, v1::PRECISION_BFLOAT16) == whole));
}

BOOST_AUTO_TEST_CASE(bfloat16_is_as_exact_as_pytorchs_autocast) {
  const auto ours = train({}, v1::PRECISION_BFLOAT16);
  std::vector<double> ratios;
  for (const auto& [name, numbers] : ours) {
    const auto exact = expected("float64", name);
    const double error = relative_error(numbers, exact);
    const double theirs = relative_error(expected("autocast", name), exact);
    BOOST_TEST(theirs > 1e-6, name);  // it is bfloat16
    // The bounds that hold for float32 against plain PyTorch.
    BOOST_TEST(error <= 8 * theirs, name << ": " << error << ", autocast " << theirs);
    ratios.push_back(error / theirs);
  }
  std::sort(ratios.begin(), ratios.end());
  BOOST_TEST(ratios[ratios.size() / 2] <= 2);
}

}  // namespace troupe::mp::test
