// The job files that users start from, and the example driver, as the README runs them.

#include <regex>

#include <nlohmann/json.hpp>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"
#include "job_text.hpp"

namespace troupe::test {
namespace {

const std::string configs = TROUPE_SOURCE_DIR "/apps/configs/";

/// The files that say that they are jobs.
std::vector<std::string> job_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TROUPE_SOURCE_DIR "/apps"))
    if (entry.path().extension() == ".textproto" &&
        read_text(entry.path()).find("# proto-message: troupe.runtime.v1.Job\n") !=
            std::string::npos)
      files.push_back(entry.path().string());
  return files;
}

std::vector<std::string> set(const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments;
  for (const auto& each : overrides) arguments.insert(arguments.end(), {"--set", each});
  return arguments;
}

/// A job cut down to one step, which leaves weights of the right names and shapes.
void write_weights(const Cluster& cluster, const std::string& job,
                   std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), {"plugin.stages[0].device=fake", "plugin.stages[1].device=fake",
                                     "plugin.batch_size=8", "plugin.micro_batch_size=4"});
  const auto outcome = outcome_of(cluster.run(configs + job + ".textproto", set(overrides)));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
}

/// The weights that a job file begins with, which another job leaves.
class StandInWeights {
 public:
  StandInWeights() {
    write_weights(demo_, "fashion_mnist",
                  {"plugin.data.fashion_mnist.limit=8", "plugin.epochs=1",
                   "plugin.evaluation.data.fashion_mnist.limit=100"});
    write_weights(gpt_, "gpt_text", {"plugin.stages[2].device=fake", "plugin.steps=1"});
  }

  std::vector<std::string> overrides(const std::string& job_file) const {
    if (job_file.find("predict") != std::string::npos) return of(demo_);
    if (job_file.find("generate") != std::string::npos) return of(gpt_);
    return {};
  }

 private:
  static std::vector<std::string> of(const Cluster& cluster) {
    return {"plugin.init_from=" + cluster.out() + "/weights.safetensors"};
  }

  Cluster demo_;
  Cluster gpt_;
};

/// Files of CIFAR-10 with two images each, of black and of grey.
std::string write_cifar(const TemporaryDirectory& files) {
  const auto record = [](char label, char pixel) {
    return std::string(1, label) + std::string(3072, pixel);
  };
  for (const std::string name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5", "test_batch"})
    files.write(name + ".bin", record(1, 0) + record(9, 100));
  return files.path().string();
}

/// A PNG file of 2 x 2 pixels, written by Pillow.
const std::string tiny_png(
    "\x89\x50\x4E\x47\x0D\x0A\x1A\x0A\x00\x00\x00\x0D\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00\x00"
    "\x02"
    "\x08\x02\x00\x00\x00\xFD\xD4\x9A\x73\x00\x00\x00\x16\x49\x44\x41\x54\x78\x9C\x63\xF8\xCF\xC0"
    "\xC0"
    "\xF0\x9F\x81\x81\x81\xE1\x3F\x27\x07\x3B\x00\x1A\x26\x03\x16\x5C\x56\xFB\xD8\x00\x00\x00\x00"
    "\x49"
    "\x45\x4E\x44\xAE\x42\x60\x82",
    79);

/// Two classes with two images each.
std::string write_images(const TemporaryDirectory& files) {
  for (const std::string name : {"cat", "dog"}) {
    std::filesystem::create_directory(files.path() / name);
    files.write(name + "/1.png", tiny_png);
    files.write(name + "/2.png", tiny_png);
  }
  return files.path().string();
}

/// Small files in place of the data sets that a job file does not bring along.
class StandInData {
 public:
  StandInData() : cifar_(write_cifar(cifar_files_)), images_(write_images(image_files_)) {}

  std::vector<std::string> overrides(const std::string& job_file) const {
    if (job_file.find("cifar") != std::string::npos) return of("cifar", cifar_);
    if (job_file.find("image_folder") != std::string::npos) return of("image_folder", images_);
    return {};
  }
  const std::string& images() const { return images_; }

 private:
  static std::vector<std::string> of(const std::string& kind, const std::string& directory) {
    return {"plugin.data." + kind + ".directory=" + directory,
            "plugin.evaluation.data." + kind + ".directory=" + directory};
  }

  TemporaryDirectory cifar_files_;
  TemporaryDirectory image_files_;
  std::string cifar_;
  std::string images_;
};

/// A job file cut down to an epoch of a small model on the device "fake".
Process run_small(const Cluster& cluster, const StandInData& data, const std::string& name,
                  const std::vector<std::string>& more) {
  auto overrides = data.overrides(name);
  overrides.insert(overrides.end(),
                   {"plugin.stages[0].device=fake", "plugin.stages[1].device=fake",
                    "plugin.model.resnet.depth=18", "plugin.model.resnet.width_multiplier=0.125",
                    "plugin.epochs=1"});
  overrides.insert(overrides.end(), more.begin(), more.end());
  auto arguments = set(overrides);
  arguments.emplace_back("--json");
  return cluster.run(configs + name + ".textproto", arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(example_jobs)

BOOST_AUTO_TEST_CASE(every_job_file_passes_the_check) {
  const StandInWeights weights;
  const StandInData data;
  const auto files = job_files();
  BOOST_TEST(files.size() >= 8u);
  for (const auto& file : files) {
    std::vector<std::string> arguments{"check", file};
    for (const auto& overrides : {set(data.overrides(file)), set(weights.overrides(file))})
      arguments.insert(arguments.end(), overrides.begin(), overrides.end());
    Process check = start_troupe(arguments);
    BOOST_TEST(check.read_line().has_value(), file);
    while (check.read_line()) {
    }
    BOOST_TEST(check.wait().value_or(-1) == 0, file << ": " << check.error_output());
    BOOST_TEST(check.error_output().empty(), check.error_output());
  }
}

BOOST_AUTO_TEST_CASE(the_cifar_job_trains_and_evaluates) {
  const Cluster cluster;
  const StandInData data;
  const auto result = result_of(
      run_small(cluster, data, "cifar10", {"plugin.batch_size=4", "plugin.micro_batch_size=2"}));
  BOOST_TEST(result.at("steps") == 3);
  BOOST_TEST(result.at("samples") == 10);
  BOOST_TEST(result.at("evaluation_samples") == 2);
  BOOST_TEST(!result.contains("skipped_files"));
}

BOOST_AUTO_TEST_CASE(unreadable_images_are_counted_or_end_the_job) {
  const StandInData data;
  const std::string damaged = data.images() + "/dog/1.png";
  std::filesystem::resize_file(damaged, 60);
  const std::vector<std::string> small = {"plugin.batch_size=2", "plugin.micro_batch_size=1",
                                          "plugin.data.image_folder.size=32",
                                          "plugin.evaluation.data.image_folder.size=32",
                                          "plugin.evaluation.data.image_folder.resize=32"};
  // Training skips it, and so the evaluation is told to.
  auto skip = small;
  skip.push_back("plugin.evaluation.data.image_folder.on_corrupt=ON_CORRUPT_SKIP");
  const Cluster cluster;
  const auto result = result_of(run_small(cluster, data, "image_folder", skip));
  BOOST_TEST(result.at("samples") == 4);
  BOOST_TEST(result.at("skipped_files") == 1);
  const auto events = read_text(cluster.out() + "/events.jsonl");
  BOOST_TEST(events.find("\"skipped_file\"") != std::string::npos, events);
  BOOST_TEST(events.find(damaged) != std::string::npos, events);

  const Cluster strict;
  auto fail = small;
  fail.push_back("plugin.data.image_folder.on_corrupt=ON_CORRUPT_FAIL");
  const auto outcome = outcome_of(run_small(strict, data, "image_folder", fail));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  BOOST_TEST(outcome.error.find(damaged + ": cannot decode the PNG file") != std::string::npos,
             outcome.error);
}

#ifdef TEST_LIBTORCH

namespace {

/// Runs the origin job on small images and expects its lines: a step each, with its time.
void expect_three_steps(const std::string& micro_batch_size,
                        std::vector<std::string> overrides = {}) {
  BOOST_TEST_CONTEXT("micro-batch size " << micro_batch_size) {
    overrides.insert(overrides.end(), {"plugin.data.synthetic.shape=[3, 64, 64]",
                                       "plugin.micro_batch_size=" + micro_batch_size});
    const Cluster cluster;
    Process run = cluster.run(configs + "resnet50_rpc.textproto", set(overrides));
    const std::regex timing(R"(: loss [0-9.e+-]+, [0-9]+\.[0-9]{3} s)");
    for (const std::string step : {"1", "2", "3"}) {
      const std::string begin = "step " + step + "/3";
      const auto line = run.read_line_with(begin);
      BOOST_REQUIRE_MESSAGE(line, run.error_output());
      BOOST_TEST(std::regex_match(line->substr(begin.size()), timing), *line);
    }
    const auto summary = run.read_line_with("trained 3 steps in ");
    BOOST_TEST(summary.has_value());
    BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
    BOOST_TEST(all_gone(cluster.job_processes()));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_origin_job_runs_with_nothing_started) {
  for (const char* size : {"1", "2"}) expect_three_steps(size);
}

BOOST_AUTO_TEST_CASE(the_origin_job_runs_on_two_launchers) {
  const Cluster cluster;
  std::string first, second;
  const Process one = cluster.start_launcher("one", first);
  const Process two = cluster.start_launcher("two", second);
  for (const char* size : {"1", "2"})
    expect_three_steps(size, {"nodes[0].address=" + first, "nodes[1].address=" + second});
}

BOOST_AUTO_TEST_CASE(the_example_driver_trains_with_both_micro_batch_sizes) {
  Process driver({RPC_DRIVER, "--depth", "18", "--image", "64", "--batches", "1"},
                 {{"TROUPE_BINARY", TROUPE_BINARY}, {"TROUPE_PLUGIN_PATH", TEST_PLUGINS}});
  const std::regex timing(R"(loss [0-9.]+, [0-9]+\.[0-9]{3} s)");
  for (const std::string size : {"1", "2"}) {
    const std::string begin = "micro-batch size " + size + ", batch 1: ";
    const auto line = driver.read_line_with(begin);
    BOOST_REQUIRE_MESSAGE(line, driver.error_output());
    BOOST_TEST(std::regex_match(line->substr(begin.size()), timing), *line);
  }
  BOOST_TEST(driver.wait().value_or(-1) == 0, driver.error_output());
}

BOOST_AUTO_TEST_CASE(the_text_job_learns_more_than_frequencies_and_writes) {
  const std::vector<std::string> small = {"plugin.model.gpt2.width=64",
                                          "plugin.model.gpt2.heads=2"};
  const auto arguments = [&](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), small.begin(), small.end());
    auto all = set(overrides);
    all.emplace_back("--json");
    return all;
  };
  const Cluster training;
  const auto result = result_of(training.run(
      configs + "gpt_text.textproto",
      arguments({"plugin.steps=60", "plugin.batch_size=16", "plugin.optimizer.adamw.lr=0.005",
                 "plugin.evaluation.every_steps=0"})));
  // Of 256 bytes that are equally likely a guess is off by log(256) = 5.545.
  BOOST_TEST(result.at("frequency_loss") < 4.0);
  BOOST_TEST(result.at("evaluation_loss").get<double>() <
             result.at("frequency_loss").get<double>() - 0.2);
  BOOST_TEST(result.at("accuracy") > 0.18);
  BOOST_TEST(result.at("stages").size() == 3u);

  const Cluster writing;
  const auto written = result_of(
      writing.run(configs + "gpt_generate.textproto",
                  arguments({"plugin.init_from=" + training.out() + "/weights.safetensors",
                             "plugin.tokens=20"})));
  BOOST_TEST(written.at("tokens") == 20);
  const std::string text = read_text(writing.out() + "/generated.txt");
  BOOST_TEST(text.size() == written.at("prompt_tokens").get<std::size_t>() + 20);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
