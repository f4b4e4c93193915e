#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "common.hpp"
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
  try {
    if (auto configured = configure_log(); !configured) return report(configured.error());
    return parse_and_act(argc, argv);
  } catch (const std::exception& exception) {
    return report(internal_error("internal", exception.what()));
  }
}
