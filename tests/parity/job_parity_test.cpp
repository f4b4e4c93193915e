// What `troupe run` leaves in its output directory against plain PyTorch: the whole path from the
// files of a job over processes and links to weights.safetensors and metrics.jsonl, in float64.
#include <nlohmann/json.hpp>
#include <sstream>

#include "integration/cluster.hpp"
#include "integration/model_parallel/job_text.hpp"
#include "parity/parity_case.hpp"

namespace troupe::test {
namespace {

using namespace mp::test;
using Json = nlohmann::json;

/// ResNet-18 with momentum and clipping; each batch of 5 is cut into 2, 2 and 1.
ParityRuns clipped_training() {
  ParityRuns runs;
  runs.batch = 5;
  runs.micro_batch = 2;
  runs.cross_entropy = true;
  runs.float32 = false;
  auto& update = runs.updates["clipped"];
  update.sgd.set_lr(0.05);
  update.sgd.set_momentum(0.9);
  update.clip = 0.5;
  return runs;
}

/// The same as a job, from the files that PyTorch starts from.
JobText job_of(const Reference& reference) {
  JobText job;
  job.model = "resnet { depth: 18 num_classes: 10 }";
  job.stages = {{"a", "", ""}, {"b", "layer3", ""}};
  job.optimizer = "optimizer { sgd { lr: 0.05 momentum: 0.9 } } clip_grad_norm: 0.5";
  job.data = "data { tensors { path: \"" + reference.file("data") + "\" } }";
  job.batches = "batch_size: 5 micro_batch_size: 2";
  job.more = "precision: PRECISION_FLOAT64 init_from: \"" + reference.file("start") + "\"";
  return job;
}

std::vector<Json> metrics_of(const Cluster& cluster) {
  std::vector<Json> lines;
  std::istringstream text(read_text(cluster.out() + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_job_of_two_nodes_trains_what_pytorch_trains) {
  const Reference reference(clipped_training());
  const auto expected = reference.open("clipped");
  const auto number = [&](const std::string& name) {
    return as_doubles(must(expected.tensor("float64/" + name))).front();
  };

  const Cluster cluster;
  const auto outcome =
      outcome_of(cluster.run(cluster.files().write("job.textproto", job_of(reference).text())));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);

  const auto metrics = metrics_of(cluster);
  BOOST_REQUIRE_EQUAL(metrics.size(), 3u);
  for (std::size_t step = 0; step < 3; ++step) {
    BOOST_TEST_CONTEXT("step " << step + 1) {
      const double bound = step == 0 ? 1e-9 : 1e-6;
      const std::string suffix = "/" + std::to_string(step);
      BOOST_TEST(number("norm" + suffix) > 0.5);
      BOOST_TEST(relative_error({metrics[step].at("loss")}, {number("loss" + suffix)}) <= bound);
      BOOST_TEST(relative_error({metrics[step].at("grad_norm")}, {number("norm" + suffix)}) <=
                 bound);
    }
  }

  const auto weights = must(mp::SafetensorsFile::open(cluster.out() + "/weights.safetensors"));
  std::size_t tensors = 0;
  double worst = 0;
  for (const auto& name : expected.names()) {
    const std::string prefix = "float64/state/2/";
    if (name.rfind(prefix, 0) != 0) continue;
    ++tensors;
    const double error =
        relative_error(as_doubles(must(weights.tensor(name.substr(prefix.size())))),
                       as_doubles(must(expected.tensor(name))));
    BOOST_TEST(error <= 1e-6, name);
    worst = std::max(worst, error);
  }
  BOOST_TEST(tensors == 122u);  // of torchvision's ResNet-18
  BOOST_TEST(weights.names().size() == tensors);
  BOOST_TEST_MESSAGE("largest relative error of a tensor after three steps: " << worst);
}

}  // namespace troupe::test
