// What happens to a job, and to every process of it, when one of them dies, freezes or is told to
// stop. The heartbeat of most of these jobs notices silence after 1.5 s; where a time limit is part
// of the contract, it is the default of 3 s.

#include <csignal>

#include "integration/cluster.hpp"

namespace troupe::test {
namespace {

/// What the contract allows from a failure to the exit of the job.
constexpr std::chrono::seconds failure_limit{5};

/// In a job file: nothing.
const std::string default_heartbeat;

/// A job on two workers of its own, or on two launchers, that has exchanged parcels and waits.
struct RunningJob {
  explicit RunningJob(const std::string& ending, const std::string& heartbeat = Cluster().heartbeat,
                      const std::vector<std::string>& addresses = {"", ""})
      : run(start(cluster, ending, heartbeat, addresses)) {
    BOOST_REQUIRE_MESSAGE(run.read_line_with("waiting"), run.error_output());
    workers = children_of(run.pid());
    // Those of launchers are not its children.
    BOOST_REQUIRE_EQUAL(workers.size(), addresses.front().empty() ? 2u : 0u);
  }

  void expect_failure_naming(const std::string& node) {
    BOOST_TEST(run.wait().value_or(-1) == 3);
    const std::string error = run.error_output();
    BOOST_TEST(is_one_error_line(error), error);
    BOOST_TEST(error.find("node " + node) != std::string::npos, error);
    BOOST_TEST(all_gone(workers));
  }

  static Process start(Cluster& cluster, const std::string& ending, const std::string& heartbeat,
                       const std::vector<std::string>& addresses) {
    cluster.heartbeat = heartbeat;
    return cluster.run(cluster.job("rounds: 2 ending: " + ending, addresses));
  }

  Cluster cluster;
  Process run;
  std::vector<pid_t> workers;
};

/// The same on two launchers.
struct JobOnLaunchers : OnLaunchers<RunningJob> {
  explicit JobOnLaunchers(const std::string& heartbeat = Cluster().heartbeat,
                          const std::string& ending = "ENDING_WAIT")
      : OnLaunchers(ending, heartbeat) {}
};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_failure)

BOOST_AUTO_TEST_CASE(a_killed_worker_fails_the_job_and_is_named) {
  RunningJob job("ENDING_WAIT");
  kill(worker_of(job.run.pid(), "b").value(), SIGKILL);
  job.expect_failure_naming("b");
}

BOOST_AUTO_TEST_CASE(a_frozen_worker_fails_the_job_and_is_named) {
  RunningJob job("ENDING_WAIT");
  kill(worker_of(job.run.pid(), "b").value(), SIGSTOP);
  job.expect_failure_naming("b");
  BOOST_TEST(read_text(job.cluster.out() + "/events.jsonl").find("\"node_lost\"") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_worker_that_crashes_is_named) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 1 ending: ENDING_CRASH node: \"b\""));
  BOOST_TEST(run.wait().value_or(-1) == 3);
  BOOST_TEST(run.error_output().find("troupe: node b: ") != std::string::npos, run.error_output());
}

BOOST_AUTO_TEST_CASE(an_actor_that_ends_with_an_error_is_reported_by_its_node) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 1 ending: ENDING_FAIL node: \"b\""));
  BOOST_TEST(run.wait().value_or(-1) == 1);
  BOOST_TEST(run.error_output().find("troupe: b/echo: ") != std::string::npos, run.error_output());
  const std::string events = read_text(cluster.out() + "/events.jsonl");
  const auto first = events.find("\"failure\"");
  BOOST_TEST(first != std::string::npos, events);
  BOOST_TEST(events.find("\"failure\"", first + 1) == std::string::npos, events);
}

BOOST_AUTO_TEST_CASE(an_actor_that_cannot_be_created_comes_back_as_its_error) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 1 ending: ENDING_REFUSE node: \"b\""));
  BOOST_TEST(run.wait().value_or(-1) == 2);
  BOOST_TEST(run.error_output() ==
             "troupe: b/echo: refuses to exist; see docs/configuration.md for what is allowed\n");
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_the_job_and_its_workers) {
  RunningJob job("ENDING_WAIT");
  job.run.signal(SIGINT);
  BOOST_TEST(job.run.wait().value_or(-1) == 130);
  BOOST_TEST(all_gone(job.workers));
}

BOOST_AUTO_TEST_CASE(a_second_ctrl_c_ends_a_job_that_does_not_react) {
  RunningJob job("ENDING_DEAF");
  job.run.signal(SIGINT);
  BOOST_TEST(!job.run.wait(std::chrono::milliseconds(300)).has_value());
  job.run.signal(SIGINT);
  BOOST_TEST(job.run.wait().value_or(-1) == 130);
  BOOST_TEST(all_gone(job.workers));
}

BOOST_AUTO_TEST_CASE(a_killed_driver_takes_its_workers_along) {
  RunningJob job("ENDING_WAIT");
  BOOST_REQUIRE_EQUAL(job.workers.size(), 2u);
  job.run.signal(SIGKILL);
  BOOST_TEST(job.run.wait().value_or(-1) == 137);
  BOOST_TEST(all_gone(job.workers));
}

BOOST_AUTO_TEST_CASE(a_killed_driver_leaves_launchers_without_workers) {
  JobOnLaunchers cluster;
  cluster.job.run.signal(SIGKILL);
  BOOST_TEST(all_gone(cluster.workers));
  Process status = start_troupe({"status", cluster.first});
  BOOST_TEST(status.wait().value_or(-1) == 0, status.error_output());
}

BOOST_AUTO_TEST_CASE(a_killed_launcher_takes_its_workers_along_and_fails_the_job) {
  JobOnLaunchers cluster;
  const auto worker = worker_of(cluster.two.pid(), "b");
  BOOST_REQUIRE(worker);
  cluster.two.signal(SIGKILL);
  BOOST_TEST(all_gone({*worker}));
  cluster.job.expect_failure_naming("b");
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_frozen_worker_of_a_launcher_is_killed_by_it) {
  JobOnLaunchers cluster;
  kill(worker_of(cluster.two.pid(), "b").value(), SIGSTOP);
  cluster.job.expect_failure_naming("b");
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_launcher_told_to_stop_has_the_job_stop_in_order) {
  JobOnLaunchers cluster;
  cluster.two.signal(SIGTERM);
  BOOST_TEST(cluster.two.wait().value_or(-1) == 0);
  cluster.job.expect_failure_naming("b");
  const std::string error = cluster.job.run.error_output();
  BOOST_TEST(error.find("its launcher drains") != std::string::npos, error);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_frozen_worker_is_noticed_in_time_by_default) {
  RunningJob job("ENDING_WAIT", default_heartbeat);
  kill(worker_of(job.run.pid(), "b").value(), SIGSTOP);
  BOOST_TEST(job.run.wait(failure_limit).has_value());
  job.expect_failure_naming("b");
}

BOOST_AUTO_TEST_CASE(a_frozen_launcher_fails_the_job_in_time_and_is_named) {
  JobOnLaunchers cluster(default_heartbeat);
  cluster.two.signal(SIGSTOP);
  BOOST_TEST(cluster.job.run.wait(failure_limit).has_value());
  cluster.job.expect_failure_naming("b");
  cluster.two.signal(SIGCONT);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_frozen_launcher_and_its_worker_fail_the_job_in_time) {
  JobOnLaunchers cluster(default_heartbeat);
  const pid_t worker = worker_of(cluster.two.pid(), "b").value();
  cluster.two.signal(SIGSTOP);
  kill(worker, SIGSTOP);
  BOOST_TEST(cluster.job.run.wait(failure_limit).has_value());
  cluster.job.expect_failure_naming("b");
  // The launcher alone is enough: it ends what it finds frozen.
  cluster.two.signal(SIGCONT);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_frozen_driver_loses_its_workers_in_time) {
  RunningJob job("ENDING_WAIT", default_heartbeat);
  job.run.signal(SIGSTOP);
  BOOST_TEST(all_gone(job.workers, failure_limit));
  job.run.signal(SIGCONT);
  BOOST_TEST(job.run.wait().value_or(-1) == 3);
}

BOOST_AUTO_TEST_CASE(a_frozen_driver_loses_its_workers_on_launchers_in_time) {
  JobOnLaunchers cluster(default_heartbeat);
  cluster.job.run.signal(SIGSTOP);
  BOOST_TEST(all_gone(cluster.workers, failure_limit));
  cluster.job.run.signal(SIGCONT);
  BOOST_TEST(cluster.job.run.wait().value_or(-1) == 3);
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_a_job_on_launchers_and_its_workers) {
  JobOnLaunchers cluster;
  cluster.job.run.signal(SIGINT);
  BOOST_TEST(cluster.job.run.wait().value_or(-1) == 130);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_CASE(a_second_ctrl_c_ends_a_deaf_job_on_launchers) {
  JobOnLaunchers cluster(Cluster().heartbeat, "ENDING_DEAF");
  cluster.job.run.signal(SIGINT);
  BOOST_TEST(!cluster.job.run.wait(std::chrono::milliseconds(300)).has_value());
  cluster.job.run.signal(SIGINT);
  BOOST_TEST(cluster.job.run.wait().value_or(-1) == 130);
  BOOST_TEST(all_gone(cluster.workers));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
