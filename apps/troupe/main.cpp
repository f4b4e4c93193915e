#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "common.hpp"
#include "config/suggest.hpp"
#include "troupe/log.hpp"

namespace {

using namespace troupe;
using namespace troupe::cli;

/// TROUPE_LOG=debug|info|warning|error; workers inherit it.
Result<void> configure_log() {
  const char* wanted = std::getenv("TROUPE_LOG");
  if (wanted == nullptr) wanted = "warning";
  const char* names[] = {"debug", "info", "warning", "error"};
  for (int level = 0; level < 4; ++level) {
    if (std::strcmp(wanted, names[level]) != 0) continue;
    set_log_level(static_cast<LogLevel>(level));
    return {};
  }
  return bad_input("TROUPE_LOG", std::string("no level is called \"") + wanted + "\"",
                   "set it to debug, info, warning or error");
}

/// Where CLI11 only says that there is no command, the word that is none.
Error usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  if (!commands.empty())
    return bad_input("command line", error.what(),
                     "see troupe " + commands.front()->get_name() + " --help");
  std::vector<std::string> known;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) known.push_back(command->get_name());
  if (argc > 1 && argv[1][0] != '-')
    return bad_input("command line", "there is no command '" + std::string(argv[1]) + "'",
                     suggest(argv[1], known, "commands"));
  return bad_input("command line", error.what(), "see troupe --help");
}

/// What was printed is lost if it could not be written; a reader that has seen enough is no error.
int finish_output(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  struct stat status {};
  const bool pipe =
      fstat(STDOUT_FILENO, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode);
  if (written || pipe || code != 0) return code;
  return report(
      internal_error("stdout", "what was printed could not be written", "make room where it goes"));
}

int parse_and_act(int argc, char** argv) {
  CLI::App app("Actors on many machines: trains models too large or too slow for one.", "troupe");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  Action action;
  add_node_command(app, action);
  add_run_command(app, action);
  add_check_command(app, action);
  add_doctor_command(app, action);
  add_status_command(app, action);
  add_version_command(app, action);
  add_worker_command(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    return app.exit(request);  // --help
  } catch (const CLI::ParseError& error) {
    return report(usage_error(app, argc, argv, error));
  }
  return finish_output(action());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (auto configured = configure_log(); !configured) return report(configured.error());
    return parse_and_act(argc, argv);
  } catch (const std::exception& exception) {
    return report(internal_error("internal", exception.what()));
  }
}
