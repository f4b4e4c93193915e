// The job files that users start from, and the example driver, as the README runs them.

#include <regex>

#include "integration/cluster.hpp"
#include "job_text.hpp"

namespace troupe::test {
namespace {

const std::string configs = TROUPE_SOURCE_DIR "/apps/configs/";

/// The files that say that they are jobs.
std::vector<std::string> job_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(configs))
    if (read_text(entry.path()).find("# proto-message: troupe.runtime.v1.Job\n") !=
        std::string::npos)
      files.push_back(entry.path().string());
  return files;
}

std::vector<std::string> set(const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments;
  for (const auto& each : overrides) arguments.insert(arguments.end(), {"--set", each});
  return arguments;
}

/// The demo's job cut down to one step, which leaves weights of the right names and shapes.
void write_demo_weights(const Cluster& cluster) {
  const auto outcome = outcome_of(cluster.run(
      configs + "fashion_mnist.textproto",
      set({"plugin.stages[0].device=fake", "plugin.stages[1].device=fake",
           "plugin.data.fashion_mnist.limit=8", "plugin.batch_size=8", "plugin.micro_batch_size=4",
           "plugin.epochs=1", "plugin.evaluation.data.fashion_mnist.limit=100"})));
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(example_jobs)

BOOST_AUTO_TEST_CASE(every_job_file_passes_the_check) {
  const Cluster demo;
  write_demo_weights(demo);
  const auto files = job_files();
  BOOST_TEST(files.size() >= 4u);
  for (const auto& file : files) {
    std::vector<std::string> arguments{"check", file};
    if (file.find("predict") != std::string::npos) {
      const auto weights = set({"plugin.init_from=" + demo.out() + "/weights.safetensors"});
      arguments.insert(arguments.end(), weights.begin(), weights.end());
    }
    Process check = start_troupe(arguments);
    BOOST_TEST(check.read_line().has_value(), file);
    while (check.read_line()) {
    }
    BOOST_TEST(check.wait().value_or(-1) == 0, file << ": " << check.error_output());
    BOOST_TEST(check.error_output().empty(), check.error_output());
  }
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

#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
