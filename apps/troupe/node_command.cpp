#include <cstdio>
#include <memory>

#include "app/launcher.hpp"
#include "app/paths.hpp"
#include "app/signals.hpp"
#include "common.hpp"
#include "config/loader.hpp"
#include "troupe/log.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> sets;
};

int run_node(const Options& options) {
  auto node = load_node(options.config, options.sets);
  if (!node) return report(node.error());
  set_log_node(node->name());
  const BlockedSignals blocked;
  auto outcome = run_launcher(*node, this_binary(), [&](const std::string& address) {
    std::printf("node %s ready on %s\n", node->name().c_str(), address.c_str());
    std::fflush(stdout);
  });
  return outcome ? 0 : report(outcome.error());
}

}  // namespace

void add_node_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("node", "The launcher: hosts workers on this machine");
  command->add_option("--config", options->config, "Node file")->required();
  command->add_option("--set", options->sets, "Overrides a field: path=value")
      ->allow_extra_args(false)
      ->take_all();
  command->callback([options, &action] { action = [options] { return run_node(*options); }; });
}

}  // namespace troupe::cli
