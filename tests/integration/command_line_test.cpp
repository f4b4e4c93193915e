// The command line as a contract: output, exit codes, errors on one line.

#include <csignal>

#include "integration/cluster.hpp"
#include "integration/taken_port.hpp"

namespace troupe::test {

BOOST_AUTO_TEST_SUITE(command_line)

BOOST_AUTO_TEST_CASE(version_names_itself_and_what_it_was_built_with) {
  Process process = start_troupe({"version"});
  const auto first = process.read_line();
  BOOST_REQUIRE(first);
  BOOST_TEST(first->rfind("troupe ", 0) == 0u);
  BOOST_TEST(process.read_line_with("caf 0.17.6").has_value());
  BOOST_TEST(process.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(usage_errors_are_one_line_and_exit_2) {
  const std::vector<std::vector<std::string>> wrong = {
      {}, {"fly"}, {"run"}, {"node"}, {"status"}, {"run", "job", "--wings"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = outcome_of(start_troupe(arguments));
    BOOST_TEST(outcome.code == 2);
    BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  }
}

BOOST_AUTO_TEST_CASE(help_exits_0) {
  BOOST_TEST(outcome_of(start_troupe({"--help"})).code == 0);
  BOOST_TEST(outcome_of(start_troupe({"run", "--help"})).code == 0);
}

BOOST_AUTO_TEST_CASE(a_worker_is_not_started_by_hand) {
  BOOST_TEST(outcome_of(start_troupe({"worker"})).code == 2);
}

BOOST_AUTO_TEST_CASE(a_missing_job_file_exits_2) {
  const Outcome outcome = outcome_of(start_troupe({"run", "/nowhere/job.textproto"}));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.error.find("/nowhere/job.textproto") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(doctor_measures_the_blas_and_lists_the_plugins) {
  Process process = start_troupe({"doctor"});
  std::string report;
  while (auto line = process.read_line()) report += *line + "\n";
  BOOST_TEST(process.wait().value_or(-1) == 0, report);
  BOOST_TEST(report.find("GFLOP/s float32") != std::string::npos, report);
  BOOST_TEST(report.find("ok    plugin: test_job") != std::string::npos, report);
}

BOOST_AUTO_TEST_CASE(doctor_finds_a_node_file_that_cannot_start) {
  Cluster cluster;
  const std::string file = cluster.files().write("n.textproto", "name: \"n\" host: \"0.0.0.0\"");
  const Outcome outcome = outcome_of(start_troupe({"doctor", file}));
  BOOST_TEST(outcome.code == 2);
}

BOOST_AUTO_TEST_CASE(check_prints_the_plan_and_starts_nothing) {
  Cluster cluster;
  Process process = start_troupe({"check", cluster.job("rounds: 3")});
  BOOST_TEST(process.read_line().value_or("") == "3 rounds over 2 nodes");
  BOOST_TEST(process.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_commands_that_hold_nothing_at_once) {
  Cluster cluster;
  const std::string job = cluster.job("ending: ENDING_NEVER_CHECKED");
  for (const char* command : {"check", "run"}) {
    Process process = start_troupe({command, job});
    BOOST_REQUIRE(process.read_line_with("checking"));
    process.signal(SIGINT);
    BOOST_TEST(process.wait().value_or(-1) == 130);
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_log_level_exits_2) {
  Process process({TROUPE_BINARY, "version"}, {{"TROUPE_LOG", "loud"}});
  BOOST_TEST(process.wait().value_or(-1) == 2);
  BOOST_TEST(is_one_error_line(process.error_output()), process.error_output());
}

BOOST_AUTO_TEST_CASE(doctor_tells_who_has_the_port) {
  TakenPort taken;
  Cluster cluster;
  const std::string file =
      cluster.files().write("n.textproto", "name: \"n\" port: " + std::to_string(taken.port()));
  Process process = start_troupe({"doctor", file});
  const auto line = process.read_line_with("bad ");
  BOOST_REQUIRE(line);
  BOOST_TEST(line->find("another program listens") != std::string::npos, *line);
  BOOST_TEST(process.wait().value_or(-1) == 2);
}

BOOST_AUTO_TEST_CASE(an_output_directory_that_cannot_be_is_found_before_anything_starts) {
  Cluster cluster;
  const std::string file = cluster.files().write("file", "");
  const Outcome outcome =
      outcome_of(start_troupe({"run", cluster.job("rounds: 1"), "--out", file + "/out"}));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(launcher)

BOOST_AUTO_TEST_CASE(announces_itself_answers_status_and_drains_on_sigterm) {
  Cluster cluster;
  std::string address;
  Process launcher = cluster.start_launcher("lonely", address);
  Process status = start_troupe({"status", address});
  const auto line = status.read_line();
  BOOST_REQUIRE_MESSAGE(line, status.error_output());
  BOOST_TEST(line->rfind("node lonely", 0) == 0u);
  BOOST_TEST(status.wait().value_or(-1) == 0);
  launcher.signal(SIGTERM);
  BOOST_TEST(launcher.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(ctrl_c_ends_it_as_sigterm_does) {
  Cluster cluster;
  std::string address;
  Process launcher = cluster.start_launcher("lonely", address);
  launcher.signal(SIGINT);
  BOOST_TEST(launcher.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(a_misspelt_command_is_named) {
  const Outcome outcome = outcome_of(start_troupe({"chekc", "job.textproto"}));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.error ==
             "troupe: command line: there is no command 'chekc'; did you mean \"check\"?\n");
}

BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_an_error) {
  const Outcome lost = outcome_of(
      Process({"/bin/sh", "-c", std::string(TROUPE_BINARY) + " version > /dev/full"}, {}));
  BOOST_TEST(lost.code == 1);
  BOOST_TEST(is_one_error_line(lost.error), lost.error);
  // A reader that has seen enough.
  const Outcome enough =
      outcome_of(Process({"/bin/sh", "-c", std::string(TROUPE_BINARY) + " version | true"}, {}));
  BOOST_TEST(enough.code == 0);
  BOOST_TEST(enough.error.empty(), enough.error);
}

BOOST_AUTO_TEST_CASE(an_occupied_port_exits_2_and_names_it) {
  TakenPort taken;
  Cluster cluster;
  const std::string port = std::to_string(taken.port());
  const std::string file = cluster.files().write("n.textproto", "name: \"n\" port: " + port);
  const Outcome outcome = outcome_of(start_troupe({"node", "--config", file}));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  BOOST_TEST(outcome.error.find(port) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_to_listen_beyond_loopback) {
  Cluster cluster;
  const std::string file =
      cluster.files().write("n.textproto", "name: \"n\" host: \"0.0.0.0\" port: 0");
  const Outcome outcome = outcome_of(start_troupe({"node", "--config", file}));
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  BOOST_TEST(outcome.error.find("insecure: true") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(listens_beyond_loopback_when_told_and_warns) {
  Cluster cluster;
  const std::string file =
      cluster.files().write("n.textproto", "name: \"n\" host: \"0.0.0.0\" port: 0 insecure: true");
  Process launcher = start_troupe({"node", "--config", file});
  BOOST_TEST(launcher.read_line().value_or("").rfind("node n ready on 0.0.0.0:", 0) == 0u);
  BOOST_TEST(launcher.error_output().find("without TLS") != std::string::npos);
  launcher.signal(SIGTERM);
  BOOST_TEST(launcher.wait().value_or(-1) == 0);
}

BOOST_AUTO_TEST_CASE(status_of_nobody_exits_3) {
  TakenPort port;
  const std::string address = "127.0.0.1:" + std::to_string(port.port());
  port.release();
  const Outcome outcome = outcome_of(start_troupe({"status", address}));
  BOOST_TEST(outcome.code == 3);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  BOOST_TEST(outcome.error.find(address) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(status_of_a_malformed_address_exits_2) {
  for (const char* address : {"nowhere", "host:", ":1", "host:0", "host:65536", "host:x"})
    BOOST_TEST(outcome_of(start_troupe({"status", address})).code == 2, address);
}

BOOST_AUTO_TEST_CASE(an_unreachable_launcher_exits_3_and_names_the_node) {
  TakenPort port;
  const std::string address = "127.0.0.1:" + std::to_string(port.port());
  port.release();
  Cluster cluster;
  const Outcome outcome = outcome_of(cluster.run(cluster.job("rounds: 1", {"", address})));
  BOOST_TEST(outcome.code == 3);
  BOOST_TEST(is_one_error_line(outcome.error), outcome.error);
  BOOST_TEST(outcome.error.find("node b") != std::string::npos, outcome.error);
  BOOST_TEST(outcome.error.find(address) != std::string::npos, outcome.error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
