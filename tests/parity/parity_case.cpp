#include "parity/parity_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

#include "core/model_catalog.hpp"
#include "core/plan.hpp"
#include "libtorch/device.hpp"
#include "libtorch/executor.hpp"
#include "libtorch/layers/builtin.hpp"
#include "support/local_pipeline.hpp"

namespace troupe::mp::test {
namespace {

std::string text(double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", number);
  return buffer;
}

Plan plan_for(const ParityCase& parity_case, v1::Precision precision) {
  v1::Model model;
  model.mutable_resnet()->set_depth(parity_case.depth);
  model.mutable_resnet()->set_num_classes(parity_case.classes);
  PlanRequest request;
  request.job = "parity";
  request.seed = 1;
  request.layers = must(list_layers(model));
  request.nodes = {"here"};
  for (std::size_t i = 0; i <= parity_case.cuts.size(); ++i) {
    v1::Stage stage;
    stage.set_node("here");
    stage.set_device("cpu");
    stage.set_threads(1);
    if (i > 0) stage.set_first_layer(parity_case.cuts[i - 1]);
    request.stages.push_back(stage);
  }
  request.loss.emplace();
  if (parity_case.cross_entropy)
    request.loss->mutable_cross_entropy();
  else
    request.loss->mutable_mse();
  request.optimizer.emplace();
  *request.optimizer->mutable_sgd() = parity_case.sgd;
  request.precision = precision;
  return must(make_plan(request));
}

std::unique_ptr<StageExecutor> make_executor(const v1::StageConfig& config) {
  auto layers = std::make_shared<libtorch::LayerRegistry>();
  if (!libtorch::add_builtin_layers(*layers)) throw std::runtime_error("no layers");
  return std::make_unique<libtorch::LibtorchExecutor>(must(libtorch::find_device(config.device())),
                                                      std::move(layers));
}

LocalPipeline::Fields fields_of(const SafetensorsFile& reference, std::uint32_t step,
                                const MicroBatch& part) {
  LocalPipeline::Fields fields;
  for (const std::string name : {"inputs", "targets"}) {
    const HostTensor all = must(reference.tensor(name + "/" + std::to_string(step)));
    const auto begin = static_cast<std::int64_t>(part.first_sample);
    fields[name].tensor = all.rows(begin, begin + part.samples);
  }
  return fields;
}

/// What torch.nn.utils.clip_grad_norm_ multiplies the gradients by.
double clip_scale(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

void record_gradients(LocalPipeline& pipeline, Tensors& results) {
  for (std::size_t i = 0; i < pipeline.stages(); ++i)
    for (const auto& gradient :
         static_cast<libtorch::LibtorchExecutor&>(pipeline.stage(i)).gradients())
      results["gradient/" + gradient.name] = as_doubles(gradient.tensor);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-parity-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void run_python(const std::string& script, const std::vector<std::string>& arguments) {
  const std::string python = TROUPE_TEST_PYTHON;
  if (python.empty())
    throw std::runtime_error(
        "no Python with torch and torchvision; run `./dev deps --test` and configure again");
  std::vector<std::string> command{python,
                                   std::string(TROUPE_SOURCE_DIR "/tests/parity/") + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    std::vector<char*> argv;
    for (auto& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(script + " failed; `./dev deps --test` installs what it needs");
}

SafetensorsFile pytorch_reference(const ParityCase& c, const TemporaryDirectory& out) {
  std::vector<std::string> arguments{"--out",          out.path().string(),
                                     "--depth",        std::to_string(c.depth),
                                     "--classes",      std::to_string(c.classes),
                                     "--image",        std::to_string(c.image),
                                     "--batch",        std::to_string(c.batch),
                                     "--micro-batch",  std::to_string(c.micro_batch),
                                     "--steps",        std::to_string(c.steps),
                                     "--loss",         c.cross_entropy ? "cross_entropy" : "mse",
                                     "--lr",           text(c.sgd.lr()),
                                     "--momentum",     text(c.sgd.momentum()),
                                     "--dampening",    text(c.sgd.dampening()),
                                     "--weight-decay", text(c.sgd.weight_decay()),
                                     "--clip",         text(c.clip)};
  if (c.sgd.nesterov()) arguments.push_back("--nesterov");
  run_python("reference.py", arguments);
  return must(SafetensorsFile::open(out.path() / "reference.safetensors"));
}

Tensors troupe_results(const ParityCase& c, const SafetensorsFile& reference,
                       v1::Precision precision) {
  LocalPipeline pipeline(plan_for(c, precision), make_executor);
  TensorMap init;
  for (const auto& name : reference.names())
    if (name.rfind("init/", 0) == 0) init[name.substr(5)] = must(reference.tensor(name));
  pipeline.import_state(init);

  Tensors results;
  for (std::uint32_t step = 0; step < c.steps; ++step) {
    const std::string suffix = "/" + std::to_string(step);
    double loss = 0;
    for (const auto& part : cut(step, c.batch, c.micro_batch)) {
      const auto forward = pipeline.forward(part, fields_of(reference, step, part));
      loss += forward.loss.loss * part.weight;
      pipeline.backward(part);
    }
    results["loss" + suffix] = {loss};
    if (step == 0) record_gradients(pipeline, results);
    double squares = 0;
    for (const double square : pipeline.squared_norms()) squares += square;
    const double norm = std::sqrt(squares);
    results["norm" + suffix] = {norm};
    StepUpdate update;
    update.lr = {c.sgd.lr()};
    update.scale = clip_scale(norm, c.clip);
    pipeline.update(update);
    if (step != 0 && step + 1 != c.steps) continue;
    for (const auto& tensor : pipeline.export_state())
      results["state" + suffix + "/" + tensor.name] = as_doubles(tensor.tensor);
  }
  return results;
}

std::vector<double> as_doubles(const HostTensor& tensor) {
  const std::size_t count = static_cast<std::size_t>(must(element_count(tensor.shape)));
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (tensor.dtype) {
      case v1::DTYPE_FLOAT32: numbers[i] = tensor.as<float>()[i]; break;
      case v1::DTYPE_FLOAT64: numbers[i] = tensor.as<double>()[i]; break;
      case v1::DTYPE_INT64: numbers[i] = static_cast<double>(tensor.as<std::int64_t>()[i]); break;
      default: throw std::runtime_error("unexpected type " + to_string(tensor.dtype));
    }
  }
  return numbers;
}

}  // namespace troupe::mp::test
