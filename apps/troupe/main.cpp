#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "app/signals.hpp"
#include "common.hpp"
#include "troupe/log.hpp"

namespace {

using namespace troupe;
using namespace troupe::cli;

/// TROUPE_LOG=debug|info|warning|error; workers inherit it.
void configure_log() {
  const char* wanted = std::getenv("TROUPE_LOG");
  if (wanted == nullptr) {
    set_log_level(LogLevel::warning);
    return;
  }
  const char* names[] = {"debug", "info", "warning", "error"};
  for (int level = 0; level < 4; ++level)
    if (std::strcmp(wanted, names[level]) == 0) set_log_level(static_cast<LogLevel>(level));
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
    return report(bad_input("command line", error.what(), "see troupe --help"));
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  // Before any thread exists, and plugins and the actor system start some.
  block_shutdown_signals();
  configure_log();
  try {
    return parse_and_act(argc, argv);
  } catch (const std::exception& exception) {
    return report(internal_error("internal", exception.what()));
  }
}
