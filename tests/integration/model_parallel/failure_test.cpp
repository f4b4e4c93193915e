// A process of a training job dies, freezes or is told to stop in the middle of a step; a layer
// throws. The heartbeat of these jobs notices silence after 1.5 s.

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "integration/cluster.hpp"
#include "job_text.hpp"
#include "tensor_file.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

/// What the user is promised: a failure is reported within this time.
constexpr auto report_time = 5s;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JobText two_stage_job(const std::string& slow_down) {
  JobText job;
  job.model = perceptron({12, 16, 10});
  job.data = "data { synthetic { shape: [3, 2, 2] classes: 10 } }";
  job.batches = "batch_size: 8 micro_batch_size: 1";
  job.stages = {{"a", "", ""}, {"b", "linear1", "slow_down_seconds: " + slow_down}};
  job.length = "steps: 1000000";
  job.job_fields = "heartbeat { interval_seconds: 0.2 timeout_seconds: 1.5 }";
  return job;
}

/// Whether a file is there, or comes to be in time.
bool appears(const std::string& file) {
  const auto deadline = std::chrono::steady_clock::now() + Process::patience;
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

Process start_job(const Cluster& cluster, const JobText& job) {
  return cluster.run(cluster.files().write("job.textproto", job.text()));
}

/// A job in the middle of its steps, which take most of their time in the second stage.
struct RunningJob {
  explicit RunningJob(const std::vector<std::string>& addresses = {})
      : run(start(cluster, addresses)), workers(children_of(run.pid())) {}

  static Process start(const Cluster& cluster, const std::vector<std::string>& addresses) {
    JobText job = two_stage_job("0.01");
    job.addresses = addresses;
    if (!addresses.empty()) job.device = "fake";  // starts faster; the processes are what counts
    Process run = start_job(cluster, job);
    BOOST_REQUIRE_MESSAGE(run.read_line_with("  0%  step "), run.error_output());
    return run;
  }

  void expect_loss_of_b() {
    BOOST_TEST(run.wait(report_time).value_or(-1) == 3);
    const std::string error = run.error_output();
    BOOST_TEST(is_one_error_line(error), error);
    BOOST_TEST(contains(error, "troupe: node b, stage 1, step "), error);
    BOOST_TEST(all_gone(workers));
    BOOST_TEST(read_text(cluster.out() + "/weights.safetensors").empty());
  }

  Cluster cluster;
  Process run;
  std::vector<pid_t> workers;
};

using JobOnLaunchers = OnLaunchers<RunningJob>;

/// What becomes of a job that an error ends. It ends in time, and no process of it is left.
Outcome outcome_with(const JobText& job) {
  Cluster cluster;
  Process run = start_job(cluster, job);
  BOOST_REQUIRE(appears(cluster.out() + "/metrics.jsonl"));  // the steps begin
  Outcome outcome;
  outcome.code = run.wait(report_time).value_or(-1);
  outcome.error = run.error_output();
  BOOST_TEST(all_gone(cluster.job_processes(), report_time));
  return outcome;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training_failure)

BOOST_AUTO_TEST_CASE(a_killed_worker) {
  RunningJob job;
  BOOST_REQUIRE_EQUAL(job.workers.size(), 2u);
  BOOST_REQUIRE_EQUAL(job.cluster.job_processes().size(), 3u);  // the driver and both workers
  kill(worker_of(job.run.pid(), "b").value(), SIGKILL);
  job.expect_loss_of_b();
}

BOOST_AUTO_TEST_CASE(a_frozen_worker) {
  RunningJob job;
  kill(worker_of(job.run.pid(), "b").value(), SIGSTOP);
  job.expect_loss_of_b();
}

BOOST_AUTO_TEST_CASE(a_frozen_launcher_and_its_worker) {
  JobOnLaunchers cluster;
  const pid_t worker = worker_of(cluster.two.pid(), "b").value();
  cluster.two.signal(SIGSTOP);
  kill(worker, SIGSTOP);
  cluster.job.expect_loss_of_b();
  cluster.two.signal(SIGCONT);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_frozen_driver) {
  RunningJob job;
  job.run.signal(SIGSTOP);
  BOOST_TEST(all_gone(job.workers, report_time));
  job.run.signal(SIGCONT);
  BOOST_TEST(job.run.wait(report_time).value_or(-1) == 3);
  const std::string error = job.run.error_output();
  BOOST_TEST(is_one_error_line(error), error);
  BOOST_TEST(contains(error, ", step "), error);
}

BOOST_AUTO_TEST_CASE(a_killed_worker_of_a_launcher) {
  JobOnLaunchers cluster;
  kill(worker_of(cluster.two.pid(), "b").value(), SIGKILL);
  cluster.job.expect_loss_of_b();
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_killed_launcher) {
  JobOnLaunchers cluster;
  cluster.two.signal(SIGKILL);
  cluster.job.expect_loss_of_b();
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_killed_driver) {
  RunningJob job;
  BOOST_REQUIRE_EQUAL(job.workers.size(), 2u);
  job.run.signal(SIGKILL);
  BOOST_TEST(all_gone(job.workers, report_time));
}

BOOST_AUTO_TEST_CASE(a_killed_driver_leaves_launchers_without_workers) {
  JobOnLaunchers cluster;
  cluster.job.run.signal(SIGKILL);
  BOOST_TEST(all_gone(cluster.workers, report_time));
}

BOOST_AUTO_TEST_CASE(ctrl_c_saves_the_weights_and_ends_all_processes) {
  RunningJob job;
  job.run.signal(SIGINT);
  BOOST_TEST(job.run.wait(report_time).value_or(-1) == 130);
  const std::string error = job.run.error_output();
  BOOST_TEST(contains(error, "interrupted"), error);
  BOOST_TEST(contains(error, "weights.safetensors"), error);
  BOOST_TEST(all_gone(job.workers));
  BOOST_TEST(read_tensors(job.cluster.out() + "/weights.safetensors").size() == 4u);
}

BOOST_AUTO_TEST_CASE(a_second_ctrl_c_ends_a_long_step_at_once) {
  // A step takes minutes here, and the first Ctrl-C waits for its end.
  Cluster cluster;
  Process run = start_job(cluster, two_stage_job("20"));
  BOOST_REQUIRE(appears(cluster.out() + "/metrics.jsonl"));
  const auto workers = children_of(run.pid());
  BOOST_REQUIRE_EQUAL(workers.size(), 2u);
  run.signal(SIGINT);
  BOOST_TEST(!run.wait(500ms).has_value());
  run.signal(SIGINT);
  BOOST_TEST(run.wait(2s).value_or(-1) == 130);
  BOOST_TEST(all_gone(workers, report_time));
}

BOOST_AUTO_TEST_CASE(a_failing_layer_names_itself_its_stage_and_the_micro_batch) {
  for (const char* backward : {"0", "1"}) {
    JobText job = two_stage_job("0");
    job.device = "fake";
    job.model =
        "layers { layers { name: \"first\" kind: \"x\" } "
        "layers { name: \"linear1\" kind: \"x\" "
        "parameters { name: \"linear1.weight\" shape: [4] init { normal_std: 1 } } "
        "attributes { key: \"fail_at_step\" value: 3 } "
        "attributes { key: \"fail_at_micro_batch\" value: 5 } "
        "attributes { key: \"fail_in_backward\" value: " +
        std::string(backward) + " } } }";
    const Outcome outcome = outcome_with(job);
    BOOST_TEST(outcome.code == 1);
    BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
    for (const char* part : {"node b", "stage 1", "step 3", "micro-batch 5", "layer linear1"})
      BOOST_TEST(contains(outcome.error, part), outcome.error);
  }
}

#ifdef TEST_LIBTORCH

BOOST_AUTO_TEST_CASE(an_exception_of_libtorch_names_layer_stage_and_micro_batch) {
  JobText job = two_stage_job("0");
  job.model = perceptron({12, 16, 10});
  const std::string right = "\"in_features\" value: 16";
  job.model.replace(job.model.find(right), right.size(), "\"in_features\" value: 15");
  const Outcome outcome = outcome_with(job);
  BOOST_TEST(outcome.code == 1);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  for (const char* part : {"node b", "stage 1", "step 1", "micro-batch 0", "layer 'linear1'"})
    BOOST_TEST(contains(outcome.error, part), outcome.error);
}

BOOST_AUTO_TEST_CASE(gradients_that_are_not_finite_name_the_parameter) {
  JobText job = two_stage_job("0");
  job.optimizer = "optimizer { sgd { lr: 1e38 } }";
  const Outcome outcome = outcome_with(job);
  BOOST_TEST(outcome.code == 1);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  for (const char* part : {"step ", "linear", "not finite"})
    BOOST_TEST(contains(outcome.error, part), outcome.error);
}

#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
