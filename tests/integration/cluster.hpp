#pragma once

#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe::test {

/// The error form: one line, `troupe: ...`.
inline bool is_one_error_line(const std::string& text) {
  return text.rfind("troupe: ", 0) == 0 && text.find("; ") != std::string::npos &&
         text.find('\n') == text.size() - 1;
}

/// A `troupe` process that finds the plugins of this test, and no others.
inline Process start_troupe(std::vector<std::string> arguments,
                            Process::Environment environment = {}) {
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  environment["TROUPE_PLUGIN_PATH"] = TEST_PLUGINS;
  return Process(std::move(arguments), environment);
}

struct Outcome {
  int code = -1;  ///< -1: it has not ended in time
  std::string error;
};

/// Waits for the end of a process and takes what it wrote to stderr.
inline Outcome outcome_of(Process process) {
  Outcome outcome;
  outcome.code = process.wait().value_or(-1);
  outcome.error = process.error_output();
  return outcome;
}

/// Files of launchers and jobs in a directory of their own.
class Cluster {
 public:
  /// Starts a launcher on a port, "0" for a free one; `address` gets where it listens.
  Process start_launcher(const std::string& name, std::string& address,
                         const std::string& port = "0") const {
    const std::string file = files_.write(
        name + ".textproto", "name: \"" + name + "\" port: " + port + " drain_seconds: 2\n");
    Process launcher = start_troupe({"node", "--config", file});
    const auto line = launcher.read_line();
    BOOST_REQUIRE_MESSAGE(line, launcher.error_output());
    const std::string ready = "node " + name + " ready on ";
    BOOST_REQUIRE_EQUAL(line->substr(0, ready.size()), ready);
    address = line->substr(ready.size());
    return launcher;
  }

  /// A job of the test plugin over nodes a, b, ...; one for each address, "" for a worker on this
  /// machine.
  std::string job(const std::string& plugin, const std::vector<std::string>& addresses = {"", ""}) {
    std::string text = "name: \"test\"\n";
    char name = 'a';
    for (const std::string& address : addresses) {
      text += std::string("nodes { name: \"") + name++ + "\"";
      if (!address.empty()) text += " address: \"" + address + "\"";
      text += " }\n";
    }
    text += heartbeat;
    text += "plugin { [type.googleapis.com/troupe.test_job.v1.TestJob] { " + plugin + " } }\n";
    return files_.write("job.textproto", text);
  }

  /// Runs the job; its output directory is `out()`.
  Process run(const std::string& job_file, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"run", job_file, "--out", out()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start_troupe(std::move(arguments), {{job_mark, files_.path().string()}});
  }

  /// The processes of the jobs that `run` started, workers of this machine included, wherever their
  /// parents have gone. Workers of launchers are not among them.
  std::vector<pid_t> job_processes() const {
    return processes_with(std::string(job_mark) + "=" + files_.path().string());
  }

  /// Of the jobs; noticing sooner than by default makes tests shorter.
  std::string heartbeat = "heartbeat { interval_seconds: 0.2 timeout_seconds: 1.5 }\n";

  std::string out() const { return (files_.path() / "out").string(); }
  const TemporaryDirectory& files() const { return files_; }

 private:
  /// In the environment of all processes of a job.
  static constexpr const char* job_mark = "TROUPE_TEST_JOB";

  TemporaryDirectory files_;
};

/// A job on two launchers that were started by hand: `Job` is made of `arguments` and the
/// launchers' addresses.
template <class Job>
struct OnLaunchers {
  template <class... Arguments>
  explicit OnLaunchers(Arguments&&... arguments)
      : one(files.start_launcher("one", first)),
        two(files.start_launcher("two", second)),
        job(std::forward<Arguments>(arguments)..., std::vector<std::string>{first, second}) {
    for (pid_t launcher : {one.pid(), two.pid()})
      for (pid_t worker : children_of(launcher)) workers.push_back(worker);
    BOOST_REQUIRE_EQUAL(workers.size(), 2u);
  }

  Cluster files;
  std::string first, second;
  Process one, two;
  Job job;
  std::vector<pid_t> workers;
};

}  // namespace troupe::test
