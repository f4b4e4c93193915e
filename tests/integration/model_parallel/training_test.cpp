// What a training or prediction job does and leaves behind, over processes.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"
#include "job_text.hpp"
#include "tensor_file.hpp"

namespace troupe::test {
namespace {

using Json = nlohmann::json;

const std::string fashion_mnist = "/usr/share/datasets/fashion-mnist";

/// A job, where it ran, and what it printed as its result.
struct Run {
  explicit Run(const JobText& job, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    result = result_of(
        cluster.run(cluster.files().write("job.textproto", job.text()), std::move(arguments)));
  }

  std::string file(const std::string& name) const { return cluster.out() + "/" + name; }
  std::map<std::string, FileTensor> weights() const {
    return read_tensors(file("weights.safetensors"));
  }
  std::vector<Json> metrics() const {
    std::vector<Json> lines;
    std::istringstream text(read_text(file("metrics.jsonl")));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  Cluster cluster;
  Json result;
};

JobText perceptron_job(const std::vector<StageText>& stages) {
  JobText job;
  job.model = perceptron({12, 16, 10});
  job.data = "data { synthetic { shape: [3, 2, 2] classes: 10 samples: 20 } }";
  job.batches = "batch_size: 8 micro_batch_size: 3";
  job.stages = stages;
  return job;
}

const std::vector<StageText> two_stages = {{"a", "", ""}, {"b", "linear1", ""}};

#ifdef TEST_LIBTORCH
/// A ResNet-18 on the first Fashion-MNIST images, cut in two.
JobText fashion_job(std::uint64_t images) {
  JobText job;
  job.model = small_resnet(1);
  job.stages = {{"a", "", ""}, {"b", "layer2", ""}};
  job.optimizer = "optimizer { sgd { lr: 0.05 momentum: 0.9 } }";
  job.data = "data { fashion_mnist { limit: " + std::to_string(images) + " } shuffle: true }";
  job.batches = "batch_size: 64 micro_batch_size: 32";
  job.length = "epochs: 1";
  return job;
}

std::string evaluation(std::uint64_t images, std::uint32_t batch_size) {
  return "evaluation { data { fashion_mnist { split: SPLIT_TEST limit: " + std::to_string(images) +
         " } } batch_size: " + std::to_string(batch_size) + " }";
}

/// The job's weights on test images, forward only.
JobText prediction_of(const Run& training, std::uint64_t images, const std::string& batches) {
  JobText job = fashion_job(1);
  job.type = "PredictJob";
  job.loss = job.optimizer = job.length = "";
  job.data = "data { fashion_mnist { split: SPLIT_TEST limit: " + std::to_string(images) + " } }";
  job.batches = batches;
  job.more = "init_from: \"" + training.file("weights.safetensors") + "\"";
  return job;
}

/// The first labels of the test set, from the file that Debian ships.
std::vector<int> test_labels(std::size_t count) {
  const std::string command = "gzip -dc " + fashion_mnist + "/t10k-labels-idx1-ubyte.gz";
  FILE* pipe = popen(command.c_str(), "r");
  BOOST_REQUIRE(pipe != nullptr);
  std::vector<unsigned char> bytes(8 + count);
  BOOST_REQUIRE_EQUAL(fread(bytes.data(), 1, bytes.size(), pipe), bytes.size());
  pclose(pipe);
  return {bytes.begin() + 8, bytes.end()};
}
#endif

}  // namespace

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(each_step_leaves_a_line_of_metrics) {
  JobText job = perceptron_job(two_stages);
  job.length = "epochs: 2";
  const Run run(job);
  const auto metrics = run.metrics();
  BOOST_REQUIRE_EQUAL(metrics.size(), 6u);  // 8, 8 and 4 samples, twice
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const Json& step = metrics[i];
    BOOST_TEST(step.size() == 8u);
    BOOST_TEST(step.at("step") == i + 1);
    BOOST_TEST(step.at("samples") == (i % 3 == 2 ? 4 : 8));
    BOOST_TEST(step.at("counted") == step.at("samples"));
    BOOST_TEST(step.at("lr") == 0.05);
    for (const char* name : {"loss", "grad_norm", "seconds", "samples_per_second"}) {
      BOOST_TEST(std::isfinite(step.at(name).get<double>()), name);
      BOOST_TEST(step.at(name) > 0, name);
    }
  }
  BOOST_TEST(run.result.at("steps") == 6);
  BOOST_TEST(run.result.at("loss") == metrics.back().at("loss"));
  BOOST_TEST(run.result.at("samples") == 40);
  BOOST_TEST(run.result.at("stages").size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_step_of_several_batches_leaves_one_line) {
  JobText job = perceptron_job(two_stages);
  job.length = "epochs: 2";
  job.more =
      "accumulate_batches: 2 evaluation { data { synthetic { shape: [3, 2, 2] classes: 10 "
      "samples: 6 } } every_steps: 3 }";
  const Run run(job);
  const auto metrics = run.metrics();
  BOOST_REQUIRE_EQUAL(metrics.size(), 4u);  // 8 + 8 and 4 samples, twice
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    BOOST_TEST(metrics[i].at("step") == i + 1);
    BOOST_TEST(metrics[i].at("samples") == (i % 2 == 1 ? 4 : 16));
  }
  BOOST_TEST(run.result.at("steps") == 4);
  BOOST_TEST(run.result.at("samples") == 40);
  BOOST_TEST(run.result.at("evaluation_samples") == 6);
}

BOOST_AUTO_TEST_CASE(only_classes_have_an_accuracy) {
  JobText job = perceptron_job(two_stages);
  job.more = "evaluation { data { synthetic { shape: [3, 2, 2] classes: 10 samples: 6 } } }";
  BOOST_TEST(Run(job).result.contains("accuracy"));
  job.loss = "loss { l1 {} }";
  job.data = "data { synthetic { shape: [3, 2, 2] one_hot_classes: 10 samples: 20 } }";
  job.more =
      "evaluation { data { synthetic { shape: [3, 2, 2] one_hot_classes: 10 samples: 6 } } }";
  const Run run(job);
  BOOST_TEST(!run.result.contains("accuracy"));
  BOOST_TEST(run.result.contains("evaluation_loss"));
  BOOST_TEST(run.result.at("evaluation_samples") == 6);
}

BOOST_AUTO_TEST_CASE(a_scaled_loss_is_told_with_each_step) {
  JobText job = perceptron_job(two_stages);
  job.device = "fake";  // the CPU has no float16
  job.more = "precision: PRECISION_FLOAT16 loss_scaling { initial_scale: 8 growth_interval: 2 }";
  const Run run(job);
  std::vector<double> scales;
  for (const auto& step : run.metrics()) {
    scales.push_back(step.at("loss_scale"));
    BOOST_TEST(step.at("skipped") == 0);
  }
  const std::vector<double> expected{8, 8, 16};
  BOOST_TEST(scales == expected, boost::test_tools::per_element());
  BOOST_TEST(run.result.at("skipped_steps") == 0);
}

BOOST_AUTO_TEST_CASE(stages_report_what_computing_took) {
  const auto peaks = [](const std::string& more) {
    JobText job = perceptron_job(two_stages);
    job.more = more;
    const Run run(job);
    std::uint64_t sum = 0;
    for (const auto& stage : run.result.at("stages")) {
#ifdef TEST_LIBTORCH
      BOOST_TEST(stage.at("peak_compute_bytes").get<std::uint64_t>() >
                 stage.at("peak_activation_bytes").get<std::uint64_t>());
#endif
      sum += stage.at("peak_activation_bytes").get<std::uint64_t>();
    }
    return sum;
  };
  BOOST_TEST(peaks("recompute { layers: \"*\" }") < peaks(""));
}

BOOST_AUTO_TEST_CASE(weights_go_round_through_a_file_into_another_cut) {
  const Run first(perceptron_job(two_stages));
  JobText job = perceptron_job({{"a", "", ""}, {"b", "relu1", ""}, {"a", "linear1", ""}});
  job.job_fields = "seed: 77";  // without the file the weights would differ
  for (StageText& stage : job.stages) stage.more = "frozen: true";
  job.more = "init_from: \"" + first.file("weights.safetensors") + "\"";
  const Run second(job);
  BOOST_TEST((first.weights() == second.weights()));
  job.more.clear();
  BOOST_TEST((first.weights() != Run(job).weights()));
}

BOOST_AUTO_TEST_CASE(weights_are_named_as_the_model_names_them) {
  const auto weights = Run(perceptron_job(two_stages)).weights();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : weights) names.push_back(name);
  const std::vector<std::string> expected = {"linear0.bias", "linear0.weight", "linear1.bias",
                                             "linear1.weight"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  BOOST_TEST((weights.at("linear0.weight").shape == std::vector<std::int64_t>{16, 12}));
  BOOST_TEST(weights.at("linear0.weight").type == "F32");
}

BOOST_AUTO_TEST_CASE(discarded_weights_leave_no_file) {
  JobText job = perceptron_job(two_stages);
  job.more = "discard_weights: true";
  BOOST_TEST(read_text(Run(job).file("weights.safetensors")).empty());
}

BOOST_AUTO_TEST_CASE(fewer_micro_batches_than_stages_and_a_single_one) {
  for (const char* batches :
       {"batch_size: 8 micro_batch_size: 8", "batch_size: 8 micro_batch_size: 4"}) {
    JobText one = perceptron_job({{"a", "", ""}});
    JobText four = perceptron_job(
        {{"a", "", ""}, {"b", "linear0", ""}, {"c", "relu1", ""}, {"b", "linear1", ""}});
    one.batches = four.batches = batches;
    BOOST_TEST((Run(one).weights() == Run(four).weights()), batches);
  }
}

#ifdef TEST_LIBTORCH

BOOST_AUTO_TEST_CASE(both_stages_learn) {
  JobText job = fashion_job(4096);
  job.more = evaluation(1000, 100);
  const Run both(job);
  job.stages[1].more = "frozen: true";
  const Run frozen(job);
  const double accuracy = both.result.at("accuracy");
  const double accuracy_frozen = frozen.result.at("accuracy");
  BOOST_TEST_MESSAGE("accuracy " << accuracy << ", with the second stage frozen "
                                 << accuracy_frozen);
  BOOST_TEST(accuracy > 0.5);
  BOOST_TEST(accuracy > accuracy_frozen + 0.05);
  // The frozen weights are those of the beginning, which a learning rate of 0 keeps; the others are
  // not.
  job.stages[1].more.clear();
  job.more.clear();
  job.data = "data { fashion_mnist { limit: 64 } }";
  job.optimizer = "optimizer { sgd { lr: 0 } }";
  const auto initial = Run(job).weights();
  const auto trained = both.weights();
  std::size_t compared = 0;
  for (const auto& [name, tensor] : frozen.weights()) {
    if (name.find("conv") == std::string::npos) continue;
    ++compared;
    const bool in_second_stage = name >= "layer2";
    BOOST_TEST((tensor == initial.at(name)) == in_second_stage, name);
    BOOST_TEST((trained.at(name) != initial.at(name)), name);
  }
  BOOST_TEST(compared == 17u);  // the first, and two in each of eight blocks
}

BOOST_AUTO_TEST_CASE(evaluations_leave_the_training_alone) {
  JobText job = fashion_job(320);
  const auto without = Run(job).weights();
  job.more = "evaluation { data { fashion_mnist { split: SPLIT_TEST limit: 50 } } every_steps: 2 }";
  BOOST_TEST((Run(job).weights() == without));
}

BOOST_AUTO_TEST_CASE(the_closing_report_tells_accuracy_time_and_where_it_went) {
  JobText job = fashion_job(64);
  job.more = evaluation(0, 500);  // no limit: all of the test images
  const Run run(job);
  BOOST_TEST(run.result.at("evaluation_samples") == 10000);
  const double accuracy = run.result.at("accuracy");
  BOOST_TEST(accuracy >= 0);
  BOOST_TEST(accuracy <= 1);
  const double wall = run.result.at("wall_seconds");
  BOOST_TEST(run.result.at("training_seconds") > 0);
  BOOST_TEST(wall >= run.result.at("training_seconds").get<double>());
  BOOST_REQUIRE_EQUAL(run.result.at("stages").size(), 2u);
  for (const auto& stage : run.result.at("stages")) {
    BOOST_TEST(stage.at("compute_seconds") > 0);
    double sum = 0;
    for (const char* part : {"compute_seconds", "waiting_seconds", "transfer_seconds"}) {
      BOOST_TEST(stage.at(part) >= 0, part);
      sum += stage.at(part).get<double>();
    }
    BOOST_TEST(sum <= wall + 0.001);
    BOOST_TEST(stage.at("peak_activation_bytes") > 0);
  }
}

BOOST_AUTO_TEST_CASE(an_evaluation_does_not_depend_on_its_batch_size) {
  JobText job = fashion_job(640);
  job.more = evaluation(500, 100);
  const Run hundreds(job);
  job.more = evaluation(500, 37);
  const Run uneven(job);
  BOOST_TEST(hundreds.result.at("evaluation_samples") == 500);
  BOOST_TEST(hundreds.result.at("accuracy") == uneven.result.at("accuracy"));
  const double loss = hundreds.result.at("evaluation_loss");
  BOOST_TEST(loss == uneven.result.at("evaluation_loss").get<double>(),
             boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(a_prediction_scores_as_the_evaluation_does_whatever_its_batches) {
  JobText job = fashion_job(1280);
  job.more = evaluation(300, 100);
  const Run training(job);
  const auto labels = test_labels(300);
  std::vector<std::vector<float>> outputs;
  for (const char* batches :
       {"batch_size: 100 micro_batch_size: 100", "batch_size: 70 micro_batch_size: 33"}) {
    const Run prediction(prediction_of(training, 300, batches));
    const auto tensors = read_tensors(prediction.file("outputs.safetensors"));
    BOOST_REQUIRE_EQUAL(tensors.size(), 1u);
    BOOST_REQUIRE((tensors.at("outputs").shape == std::vector<std::int64_t>{300, 10}));
    outputs.push_back(tensors.at("outputs").as<float>());
    int correct = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = outputs.back().begin() + static_cast<std::ptrdiff_t>(10 * i);
      if (std::max_element(row, row + 10) - row == labels[i]) ++correct;
    }
    BOOST_TEST(correct / 300.0 == training.result.at("accuracy").get<double>());
  }
  for (std::size_t i = 0; i < outputs[0].size(); ++i)
    BOOST_REQUIRE_SMALL(outputs[0][i] - outputs[1][i], 1e-4F);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
