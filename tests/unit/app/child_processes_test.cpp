#include "app/child_processes.hpp"

#include <csignal>
#include <future>
#include <memory>

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
constexpr auto patience = 60s;

/// A shell as the child, with the answer and the end of it as futures.
struct Shell {
  Shell(ChildProcesses& children, const std::string& script, const std::string& input = "") {
    auto started = children.start(
        {{"/bin/sh", "-c", script}, {{"GREETING", "hello"}}, input},
        [ends = ends](pid_t, Result<std::string> text) { ends->answer.set_value(std::move(text)); },
        [ends = ends](pid_t, const std::string& how) { ends->exit.set_value(how); });
    BOOST_REQUIRE(started.ok());
    pid = *started;
  }

  Result<std::string> wait_answer() {
    auto future = ends->answer.get_future();
    BOOST_REQUIRE(future.wait_for(patience) == std::future_status::ready);
    return future.get();
  }

  std::string wait_exit() {
    auto future = ends->exit.get_future();
    BOOST_REQUIRE(future.wait_for(patience) == std::future_status::ready);
    return future.get();
  }

  /// Shared with the callbacks, which come until the children are gone.
  struct Ends {
    std::promise<Result<std::string>> answer;
    std::promise<std::string> exit;
  };
  std::shared_ptr<Ends> ends = std::make_shared<Ends>();
  pid_t pid = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(child_processes)

BOOST_AUTO_TEST_CASE(a_child_gets_its_environment_and_its_answer_comes_back) {
  ChildProcesses children;
  Shell shell(children, "printf '\\005\\000\\000\\000%s' $GREETING >&4; exit 7");
  auto answer = shell.wait_answer();
  BOOST_REQUIRE(answer.ok());
  BOOST_TEST(*answer == "hello");
  BOOST_TEST(shell.wait_exit() == "exited with status 7");
}

BOOST_AUTO_TEST_CASE(a_child_reads_its_first_message) {
  ChildProcesses children;
  Shell shell(children,
              "dd bs=9 count=1 status=none <&3 | tail -c 5 >/dev/null; "
              "printf '\\000\\000\\000\\000' >&4",
              "input");
  auto answer = shell.wait_answer();
  BOOST_REQUIRE(answer.ok());
  BOOST_TEST(answer->empty());
}

BOOST_AUTO_TEST_CASE(a_child_that_ends_without_an_answer_is_an_error) {
  ChildProcesses children;
  Shell shell(children, "exit 3");
  auto answer = shell.wait_answer();
  BOOST_REQUIRE(!answer.ok());
  BOOST_TEST(answer.error().what == "exited with status 3");
}

BOOST_AUTO_TEST_CASE(a_binary_that_is_not_there_is_an_error) {
  ChildProcesses children;
  std::promise<std::string> how;
  auto started = children.start(
      {{"/nowhere/binary"}, {}, ""}, [](pid_t, Result<std::string>) {},
      [&](pid_t, const std::string& text) { how.set_value(text); });
  BOOST_REQUIRE(started.ok());
  BOOST_TEST(how.get_future().get() == "could not be executed");
}

BOOST_AUTO_TEST_CASE(a_child_that_ignores_sigterm_is_killed_after_its_grace) {
  ChildProcesses children;
  Shell shell(children,
              "trap '' TERM; printf '\\000\\000\\000\\000' >&4; while :; do sleep 60; done");
  BOOST_REQUIRE(shell.wait_answer().ok());
  BOOST_TEST(children.terminate(shell.pid, 50ms));
  BOOST_TEST(shell.wait_exit() == "killed by signal 9 (Killed)");
  BOOST_TEST(children.wait_all(patience));
  BOOST_TEST(!children.kill(shell.pid));
}

BOOST_AUTO_TEST_CASE(a_second_request_does_not_prolong_the_grace_of_the_first) {
  ChildProcesses children;
  Shell shell(children,
              "trap '' TERM; printf '\\000\\000\\000\\000' >&4; while :; do sleep 60; done");
  BOOST_REQUIRE(shell.wait_answer().ok());
  BOOST_TEST(children.terminate(shell.pid, 50ms));
  BOOST_TEST(children.terminate(shell.pid, std::chrono::hours(1)));
  BOOST_TEST(shell.wait_exit() == "killed by signal 9 (Killed)");
}

BOOST_AUTO_TEST_CASE(an_input_longer_than_a_pipe_holds_is_refused) {
  ChildProcesses children;
  auto started = children.start(
      {{"/bin/sh", "-c", "sleep 600"}, {}, std::string(1 << 20, 'x')},
      [](pid_t, Result<std::string>) {}, [](pid_t, const std::string&) {});
  BOOST_REQUIRE(!started.ok());
  BOOST_TEST(exit_code(started.error().code) == 2);
}

BOOST_AUTO_TEST_CASE(a_stopped_child_can_be_killed) {
  ChildProcesses children;
  Shell shell(children, "kill -STOP $$");
  BOOST_TEST(children.kill(shell.pid));
  BOOST_TEST(shell.wait_exit() == "killed by signal 9 (Killed)");
}

BOOST_AUTO_TEST_CASE(the_end_of_the_object_is_the_end_of_all_children) {
  std::vector<pid_t> pids;
  {
    ChildProcesses children;
    Shell first(children, "sleep 600");
    Shell second(children, "kill -STOP $$");
    pids = {first.pid, second.pid};
    children.kill_all();
    BOOST_TEST(children.wait_all(patience));
    Shell third(children, "sleep 600 & sleep 600");
    pids.push_back(third.pid);
    // `third` is destroyed before `children`: nothing may call back into it.
    children.kill_all();
    BOOST_TEST(children.wait_all(patience));
  }
  BOOST_TEST(test::all_gone(pids));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
