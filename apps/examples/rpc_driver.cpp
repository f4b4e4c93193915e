// A C++ program as the master of a model on two workers, as in PyTorch's RPC pipeline example: the
// forward is pipelined over both, the loss is this program's own, the backward and the optimizer
// step run where the layers are. Three batches with micro-batches of one image, then of two.
//
//   rpc_driver [--depth 50] [--image 128] [--batches 3]
//
// The workers are started from the `troupe` binary beside this program (or TROUPE_BINARY).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "troupe/model_parallel/pipeline.hpp"
#include "troupe/session.hpp"

namespace {

namespace mp = troupe::mp;

constexpr std::int64_t batch_size = 8;
constexpr std::int64_t num_classes = 1000;

struct Settings {
  std::uint32_t depth = 50;
  std::int64_t image = 128;
  int batches = 3;
  std::filesystem::path program;
};

/// A tensor of float32 with its elements to fill; handed on once it is full.
struct FloatTensor {
  explicit FloatTensor(mp::Shape shape) {
    std::size_t elements = 1;
    for (auto dimension : shape) elements *= static_cast<std::size_t>(dimension);
    tensor.shape = std::move(shape);
    tensor.data = troupe::Blob::uninitialized(elements * sizeof(float));
    begin = reinterpret_cast<float*>(tensor.data.mutable_data());
    end = begin + elements;
  }

  mp::HostTensor tensor;
  float* begin = nullptr;
  float* end = nullptr;
};

mp::HostTensor random_images(std::mt19937& random, std::int64_t image) {
  FloatTensor images({batch_size, 3, image, image});
  std::normal_distribution<float> normal;
  for (float* pixel = images.begin; pixel != images.end; ++pixel) *pixel = normal(random);
  return images.tensor;
}

std::vector<std::int64_t> random_labels(std::mt19937& random) {
  std::uniform_int_distribution<std::int64_t> any_class(0, num_classes - 1);
  std::vector<std::int64_t> labels(batch_size);
  for (auto& label : labels) label = any_class(random);
  return labels;
}

struct Loss {
  double value = 0;
  mp::HostTensor gradient;  ///< with respect to the outputs
};

/// Mean over all elements of (output - target)^2, where the target is the label's one-hot row.
Loss mean_squared_error(const mp::HostTensor& outputs, const std::vector<std::int64_t>& labels) {
  const float* output = outputs.as<float>();
  FloatTensor gradient(outputs.shape);
  const double elements = static_cast<double>(batch_size * num_classes);
  Loss loss;
  for (std::int64_t row = 0; row < batch_size; ++row)
    for (std::int64_t column = 0; column < num_classes; ++column) {
      const auto i = row * num_classes + column;
      const double target = labels[static_cast<std::size_t>(row)] == column ? 1 : 0;
      const double difference = output[i] - target;
      loss.value += difference * difference / elements;
      gradient.begin[i] = static_cast<float>(2 * difference / elements);
    }
  loss.gradient = gradient.tensor;
  return loss;
}

troupe::runtime::v1::Job two_workers() {
  troupe::runtime::v1::Job job;
  job.set_name("rpc_driver");
  job.add_nodes()->set_name("worker1");
  job.add_nodes()->set_name("worker2");
  return job;
}

mp::PipelineOptions pipeline_options(const Settings& settings) {
  mp::PipelineOptions options;
  auto* resnet = options.model.mutable_resnet();
  resnet->set_depth(settings.depth);
  resnet->set_num_classes(num_classes);
  for (const auto* node : {"worker1", "worker2"}) {
    mp::v1::Stage stage;
    stage.set_node(node);
    stage.set_device("cpu");
    stage.set_threads(1);
    options.stages.push_back(stage);
  }
  options.stages[1].set_first_layer("layer3");
  options.optimizer.mutable_sgd()->set_lr(0.05);
  options.seed = 42;
  return options;
}

troupe::Result<std::unique_ptr<troupe::JobSession>> open_session(const Settings& settings) {
  troupe::SessionOptions options;
  if (std::getenv("TROUPE_BINARY") == nullptr)
    options.worker_binary = settings.program.parent_path() / "troupe";
  return troupe::JobSession::open(
      two_workers(), options, [](const std::string&) -> troupe::Result<troupe::WorkerRequirements> {
        return troupe::WorkerRequirements{
            {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}}};
      });
}

troupe::Result<void> run_batches(mp::Pipeline& pipeline, const Settings& settings,
                                 std::uint32_t micro_batch_size) {
  std::mt19937 random(1);
  const auto labels = random_labels(random);
  for (int i = 0; i < settings.batches; ++i) {
    const auto images = random_images(random, settings.image);
    const auto began = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const auto outputs, pipeline.forward(images, micro_batch_size));
    const Loss loss = mean_squared_error(outputs, labels);
    TROUPE_TRY(pipeline.backward(loss.gradient));
    TROUPE_TRY(pipeline.step());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::printf("micro-batch size %u, batch %d: loss %.6f, %.3f s\n", micro_batch_size, i + 1,
                loss.value, seconds.count());
  }
  return {};
}

/// A session of its own for each size, and so a fresh model.
troupe::Result<void> train(const Settings& settings, std::uint32_t micro_batch_size) {
  TROUPE_ASSIGN(const auto session, open_session(settings));
  TROUPE_ASSIGN(const auto pipeline, mp::spawn_pipeline(*session, pipeline_options(settings)));
  return session->finish(run_batches(*pipeline, settings, micro_batch_size));
}

bool parse(int argc, char** argv, Settings& settings) {
  std::error_code error;
  settings.program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const int number = std::atoi(argv[i + 1]);
    if (number <= 0) return false;
    if (flag == "--depth")
      settings.depth = static_cast<std::uint32_t>(number);
    else if (flag == "--image")
      settings.image = number;
    else if (flag == "--batches")
      settings.batches = number;
    else
      return false;
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!parse(argc, argv, settings)) {
    std::fprintf(stderr, "usage: %s [--depth N] [--image N] [--batches N]\n", argv[0]);
    return troupe::exit_code(troupe::ErrorCode::bad_input);
  }
  for (const std::uint32_t micro_batch_size : {1, 2}) {
    const auto trained = train(settings, micro_batch_size);
    if (trained) continue;
    std::fprintf(stderr, "rpc_driver: %s\n", trained.error().to_string().c_str());
    return troupe::exit_code(trained.error().code);
  }
  return 0;
}
