// What a training step costs in the executor alone, without actors, network or other stages: steps
// of ResNet-50 on one thread. usage: bench_executor [image size] [batch] [steps]
//
// The environment is the caller's: set what Troupe sets for its workers, or measure without.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "core/random.hpp"
#include "libtorch/executor.hpp"
#include "libtorch/layers/builtin.hpp"
#include "support/local_pipeline.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

template <class T>
T must(troupe::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().to_string());
  return std::move(result).value();
}

Plan resnet50() {
  v1::Model model;
  model.mutable_resnet()->set_depth(50);
  model.mutable_resnet()->set_num_classes(1000);
  PlanRequest request;
  request.job = "bench";
  request.seed = 1;
  request.layers = must(list_layers(model));
  request.nodes = {"here"};
  v1::Stage stage;
  stage.set_node("here");
  stage.set_threads(1);
  request.stages = {stage};
  request.loss.emplace();
  request.loss->mutable_mse();
  request.optimizer.emplace();
  request.optimizer->mutable_sgd()->set_lr(0.05);
  request.precision = v1::PRECISION_FLOAT32;
  return must(make_plan(request));
}

std::unique_ptr<StageExecutor> create(const v1::StageConfig&) {
  auto layers = std::make_shared<libtorch::LayerKinds>();
  if (!libtorch::add_builtin_layers(*layers).ok()) throw std::runtime_error("no layers");
  return std::make_unique<libtorch::LibtorchExecutor>(at::Device(at::kCPU), std::move(layers));
}

Value random_value(const std::string& name, const Shape& shape) {
  v1::Parameter parameter;
  parameter.set_name(name);
  for (const auto size : shape) parameter.add_shape(size);
  parameter.mutable_init()->set_normal_std(1);
  Value value;
  value.tensor = initial_tensor(parameter, 1, v1::DTYPE_FLOAT32);
  return value;
}

/// Milliseconds of processor time by phase of the step.
class Phases {
 public:
  void measure(const std::string& phase, const std::function<void()>& work) {
    const std::clock_t begin = std::clock();
    work();
    sums_[phase] += 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }

  double of(const std::string& phase) const { return sums_.at(phase); }

  double total() const {
    double total = 0;
    for (const auto& [phase, sum] : sums_) total += sum;
    return total;
  }

 private:
  std::map<std::string, double> sums_;
};

Phases step(LocalPipeline& pipeline, const LocalPipeline::Fields& batch, std::uint32_t samples,
            std::uint32_t micro_batch, std::uint64_t number) {
  Phases phases;
  for (const auto& part : cut(number, samples, micro_batch)) {
    LocalPipeline::Fields rows;
    for (const auto& [name, value] : batch) {
      const auto begin = static_cast<std::int64_t>(part.first_sample);
      rows[name].tensor = value.tensor.rows(begin, begin + part.samples);
    }
    phases.measure("forward", [&] { pipeline.forward(part, rows); });
    phases.measure("backward", [&] { pipeline.backward(part); });
  }
  phases.measure("norms", [&] { pipeline.squared_norms(); });
  phases.measure("update", [&] { pipeline.update({{0.05}, 1}); });
  return phases;
}

void measure(std::int64_t image, std::uint32_t samples, std::uint32_t micro_batch, int steps) {
  LocalPipeline pipeline(resnet50(), create);
  LocalPipeline::Fields batch;
  batch["inputs"] = random_value("inputs", {samples, 3, image, image});
  batch["targets"] = random_value("targets", {samples, 1000});
  std::vector<Phases> times;
  for (int i = -1; i < steps; ++i) {
    const Phases phases =
        step(pipeline, batch, samples, micro_batch, static_cast<std::uint64_t>(i + 1));
    if (i >= 0) times.push_back(phases);
  }
  std::sort(times.begin(), times.end(),
            [](const Phases& a, const Phases& b) { return a.total() < b.total(); });
  const Phases& median = times[times.size() / 2];
  std::printf("%11u", micro_batch);
  for (const char* phase : {"forward", "backward", "norms", "update"})
    std::printf(" %9.1f", median.of(phase));
  std::printf(" %9.2f\n", 1e3 * samples / median.total());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t image = argc > 1 ? std::atoll(argv[1]) : 128;
  const auto samples = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 8);
  const int steps = argc > 3 ? std::atoi(argv[3]) : 5;
  std::printf(
      "ms of processor time a step of ResNet-50: %u images of %lldx%lld, one thread, median "
      "of %d steps\n",
      samples, static_cast<long long>(image), static_cast<long long>(image), steps);
  std::printf("micro-batch %9s %9s %9s %9s %9s\n", "forward", "backward", "norms", "update",
              "images/s");
  for (std::uint32_t micro_batch = 1; micro_batch <= samples; micro_batch *= 2)
    measure(image, samples, micro_batch, steps);
  return 0;
}
