// What jobs say of layers, in the LibTorch executor: recomputation, wire types, mixed precision.
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <boost/test/unit_test.hpp>

#include "libtorch/tensors.hpp"
#include "unit/libtorch/stage_fixture.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

FunctionLayer::Tensors sum_of_three(const FunctionLayer::Tensors& in) {
  return {in[0] + in[1] + in[2]};
}

/// Passes its input on, counts its forwards in a buffer as batch norm does, and notes what it is
/// told and given.
class Probe final : public libtorch::Layer {
 public:
  Probe(const libtorch::LayerSetup& setup, std::vector<std::string>& seen)
      : count_(setup.tensor("count")), seen_(seen) {}

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const libtorch::ForwardContext& context) override {
    const c10::NoGradGuard no_grad;
    count_.add_(1);
    seen_.push_back((context.recomputing ? "again in " : "once in ") +
                    to_string(libtorch::to_dtype(inputs[0].scalar_type())));
    const c10::AutoGradMode grad(true);
    return {inputs[0] * 1};
  }

 private:
  at::Tensor count_;
  std::vector<std::string>& seen_;
};

v1::Layer probe(const std::string& name) {
  auto config = layer(name, "test.probe");
  auto* count = config.add_buffers();
  count->set_name(name + ".count");
  count->mutable_init()->set_constant(0);
  return config;
}

LocalPipeline::Factory probing_factory(std::vector<std::string>& seen) {
  auto registry = std::make_shared<libtorch::LayerKinds>();
  if (!libtorch::add_builtin_layers(*registry).ok()) throw std::runtime_error("built-in layers");
  const auto create = [&seen](const libtorch::LayerSetup& setup) {
    return std::make_unique<Probe>(setup, seen);
  };
  if (!registry->add("test.probe", create).ok()) throw std::runtime_error("test.probe");
  return [registry](const v1::StageConfig&) {
    return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), registry);
  };
}

void train_once(LocalPipeline& pipeline, Shape inputs, Shape targets) {
  LocalPipeline::Fields batch;
  batch["inputs"].tensor = pattern(std::move(inputs));
  batch["targets"].tensor = pattern(std::move(targets));
  const auto part = cut(1, 4, 4).front();
  pipeline.forward(part, batch);
  pipeline.backward(part);
  pipeline.update({{0.1}, 1});
}

double number(const std::vector<NamedTensor>& state, const std::string& name) {
  for (const auto& tensor : state)
    if (tensor.name == name)
      return tensor.tensor.dtype == v1::DTYPE_FLOAT64 ? tensor.tensor.as<double>()[0]
                                                      : tensor.tensor.as<float>()[0];
  throw std::runtime_error("no " + name);
}

PlanRequest with_loss(PlanRequest request) {
  request.loss.emplace().mutable_mse();
  return request;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_recomputed_layer_runs_twice_and_counts_once) {
  std::vector<std::string> seen;
  auto job = with_loss(request({linear("a", 3, 3), probe("b"), linear("c", 3, 2)}, {}));
  job.rules.recompute.emplace_back().set_layers("?");
  LocalPipeline pipeline(plan(job), probing_factory(seen));
  train_once(pipeline, {4, 3}, {4, 2});
  const std::vector<std::string> expected{"once in float64", "again in float64"};
  BOOST_TEST(seen == expected, boost::test_tools::per_element());
  BOOST_TEST(number(pipeline.export_state(), "b.count") == 1);
}

BOOST_AUTO_TEST_CASE(evaluations_and_kept_layers_run_once) {
  std::vector<std::string> seen;
  auto job = with_loss(request({linear("a", 3, 3), probe("b"), linear("c", 3, 2)}, {}));
  job.rules.recompute.emplace_back().set_layers("a");
  LocalPipeline pipeline(plan(job), probing_factory(seen));
  train_once(pipeline, {4, 3}, {4, 2});
  BOOST_TEST(seen.size() == 1u);
}

BOOST_AUTO_TEST_CASE(layers_compute_on_the_weights_type_in_mixed_precision) {
  std::vector<std::string> seen;
  auto job = with_loss(request({linear("a", 3, 3), probe("b"), linear("c", 3, 2)}, {"b"}));
  job.precision = v1::PRECISION_BFLOAT16;
  LocalPipeline pipeline(plan(job), probing_factory(seen));
  LocalPipeline::Fields batch;
  batch["inputs"].tensor = pattern({4, 3});
  batch["targets"].tensor = pattern({4, 2});
  const auto forward = pipeline.forward(cut(1, 4, 4).front(), batch);
  BOOST_TEST(seen.front() == "once in float32");
  BOOST_TEST(forward.values.at("a:0").tensor.dtype == v1::DTYPE_BFLOAT16);
}

BOOST_AUTO_TEST_CASE(partial_sums_of_gradients_are_rounded_at_every_reader) {
  // Three layers read the value "p": its gradient is a sum of three, added up over the stages.
  const auto train = [](const std::vector<std::string>& cuts, v1::Precision precision, bool wire) {
    std::vector<v1::Layer> layers{linear("p", 3, 3), linear("q", 3, 3), linear("r", 3, 3),
                                  linear("s", 3, 3), layer("t", "test.sum")};
    for (std::size_t i = 1; i < 4; ++i) read(layers[i], "p");
    for (const char* name : {"q", "r", "s"}) read(layers[4], name);
    auto job = with_loss(request(layers, cuts));
    job.precision = precision;
    if (wire) {
      auto& rule = job.rules.wire.emplace_back();
      rule.set_layers("p");
      rule.set_dtype(v1::DTYPE_BFLOAT16);
    }
    LocalPipeline pipeline(plan(job), factory({{"test.sum", sum_of_three}}));
    for (int step = 0; step < 2; ++step) train_once(pipeline, {4, 3}, {4, 3});
    return pipeline.export_state();
  };
  const auto same = [](const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
    BOOST_REQUIRE(a.size() == b.size());
    bool same = true;
    for (std::size_t i = 0; i < a.size(); ++i) same &= same_bits(a[i].tensor, b[i].tensor);
    return same;
  };
  for (const auto precision :
       {v1::PRECISION_FLOAT32, v1::PRECISION_FLOAT64, v1::PRECISION_BFLOAT16}) {
    const auto whole = train({}, precision, true);
    BOOST_TEST(same(whole, train({}, precision, false)) == (precision == v1::PRECISION_BFLOAT16));
    for (const auto& cuts : std::vector<std::vector<std::string>>{
             {"q"}, {"r"}, {"s"}, {"r", "s"}, {"q", "r", "s", "t", "loss"}})
      BOOST_TEST(same(whole, train(cuts, precision, true)), "cut before " << cuts[0]);
  }
}
