#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "plugin/host.hpp"
#include "troupe/result.hpp"

namespace troupe::cli {

/// What a parsed subcommand does; returns the exit code of the process.
using Action = std::function<int()>;

/// Adds a subcommand to `app`; when it is given, parsing sets `*action`.
void add_node_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_check_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_status_command(CLI::App& app, Action& action);
void add_version_command(CLI::App& app, Action& action);
void add_worker_command(CLI::App& app, Action& action);

/// Prints an error in the one form there is: `troupe: WHERE: WHAT; HOW TO MEND`, and
/// `file:line:column: message` for a position in a config file. Returns its exit code.
int report(const Error& error);

/// The directories of TROUPE_PLUGIN_PATH, or those beside the binary.
std::unique_ptr<PluginHost> make_plugin_host(const std::vector<std::string>& configured = {});

}  // namespace troupe::cli
