// Jobs that end well, with workers of their own and with launchers started by hand.

#include <csignal>

#include "integration/cluster.hpp"

namespace troupe::test {

BOOST_AUTO_TEST_SUITE(job_run)

BOOST_AUTO_TEST_CASE(runs_with_nothing_started_and_leaves_nothing_behind) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 5 payload_bytes: 1000000", {"", "", ""}));
  // From the driver to a, from worker to worker, and back.
  BOOST_TEST(run.read_line_with("trip:").value_or(run.error_output()) == "trip:driver a b c");
  const auto workers = children_of(run.pid());
  BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
  BOOST_TEST(all_gone(workers));
  BOOST_TEST(read_text(cluster.out() + "/events.jsonl").find("\"connected\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(runs_on_launchers_and_leaves_them_idle) {
  Cluster cluster;
  std::string first, second;
  Process one = cluster.start_launcher("one", first);
  Process two = cluster.start_launcher("two", second);
  const std::string job = cluster.job("rounds: 5 payload_bytes: 1000000", {first, second});
  for (int repetition = 0; repetition < 2; ++repetition) {
    Process run = cluster.run(job);
    BOOST_TEST(run.read_line_with("trip:").value_or(run.error_output()) == "trip:driver a b");
    BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
  }
  Process status = start_troupe({"status", first});
  BOOST_TEST(status.read_line_with("idle").has_value(), status.error_output());
  BOOST_TEST(children_of(one.pid()).empty());
  for (Process* launcher : {&one, &two}) {
    launcher->signal(SIGTERM);
    BOOST_TEST(launcher->wait().value_or(-1) == 0);
  }
}

BOOST_AUTO_TEST_CASE(one_launcher_hosts_two_nodes_and_the_driver_a_third) {
  Cluster cluster;
  std::string address;
  Process launcher = cluster.start_launcher("host", address);
  Process run = cluster.run(cluster.job("rounds: 2", {address, "", address}));
  BOOST_TEST(run.read_line_with("trip:").value_or(run.error_output()) == "trip:driver a b c");
  BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
}

BOOST_AUTO_TEST_CASE(a_launcher_started_again_on_its_port_serves_the_next_job) {
  Cluster cluster;
  std::string address;
  for (const int end : {SIGKILL, SIGTERM, SIGTERM}) {
    const std::string port = address.substr(address.rfind(':') + 1);
    Process launcher = cluster.start_launcher("host", address, port.empty() ? "0" : port);
    BOOST_TEST(outcome_of(cluster.run(cluster.job("rounds: 2", {address, ""}))).code == 0);
    launcher.signal(end);
    BOOST_TEST(launcher.wait().has_value());
  }
}

BOOST_AUTO_TEST_CASE(results_of_an_earlier_run_are_put_aside) {
  Cluster cluster;
  BOOST_TEST(outcome_of(cluster.run(cluster.job("rounds: 1"))).code == 0);
  BOOST_TEST(outcome_of(cluster.run(cluster.job("rounds: 2"))).code == 0);
  BOOST_TEST(read_text(cluster.out() + "/result.previous.json") == "{\"rounds\":1}");
  BOOST_TEST(read_text(cluster.out() + "/result.json") == "{\"rounds\":2}");
  // A run that cannot begin changes nothing.
  BOOST_TEST(outcome_of(cluster.run(cluster.job("ending: ENDING_REFUSE"))).code == 2);
  BOOST_TEST(read_text(cluster.out() + "/result.json") == "{\"rounds\":2}");
  const std::string events = read_text(cluster.out() + "/events.jsonl");
  BOOST_TEST(events.find("\"event\": \"finished\", \"exit_code\": 0}") != std::string::npos,
             events);
}

BOOST_AUTO_TEST_CASE(a_second_run_in_a_directory_is_refused_before_it_starts) {
  Cluster cluster;
  Process first = cluster.run(cluster.job("rounds: 1 ending: ENDING_WAIT"));
  BOOST_REQUIRE_MESSAGE(first.read_line_with("waiting"), first.error_output());
  const Outcome second = outcome_of(cluster.run(cluster.job("rounds: 1")));
  BOOST_TEST(second.code == 2);
  BOOST_TEST(second.error.find("another run writes here") != std::string::npos, second.error);
  first.signal(SIGINT);
  BOOST_TEST(first.wait().value_or(-1) == 130);
}

BOOST_AUTO_TEST_CASE(json_prints_the_result_only) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 4"), {"--json"});
  BOOST_TEST(run.read_line().value_or(run.error_output()) == "{\"rounds\":4}");
  BOOST_TEST(!run.read_line().has_value());
  BOOST_TEST(run.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(set_overrides_the_job) {
  Cluster cluster;
  Process run = cluster.run(cluster.job("rounds: 4"), {"--json", "--set", "plugin.rounds=2"});
  BOOST_TEST(run.read_line().value_or(run.error_output()) == "{\"rounds\":2}");
}

BOOST_AUTO_TEST_CASE(status_shows_the_worker_of_a_running_job) {
  Cluster cluster;
  std::string address;
  Process launcher = cluster.start_launcher("host", address);
  Process run = cluster.run(cluster.job("rounds: 1 ending: ENDING_WAIT", {address}));
  BOOST_REQUIRE_MESSAGE(run.read_line_with("waiting"), run.error_output());
  Process status = start_troupe({"status", address});
  const auto worker = status.read_line_with("worker ");
  BOOST_REQUIRE(worker);
  BOOST_TEST(worker->find("job test  node a") != std::string::npos, *worker);
  // The worker answers for itself, at the address that the launcher tells.
  Process inside = start_troupe({"status", worker->substr(worker->rfind(' ') + 1)});
  BOOST_TEST(inside.read_line_with("actor echo  test_job.echo").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
