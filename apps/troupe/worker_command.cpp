#include "app/worker.hpp"

#include <cstdlib>
#include <memory>

#include "app/signals.hpp"
#include "common.hpp"

namespace troupe::cli {
namespace {

/// Its actors and threads have ended in order; the static destructors of the libraries that
/// plugins have loaded (hundreds, with threads of their own) have nothing to add.
int act() {
  const BlockedSignals blocked;
  std::_Exit(run_worker());
}

}  // namespace

void add_worker_command(CLI::App& app, Action& action) {
  auto node = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("worker", "Started by launchers and drivers");
  command->group("");  // hidden: of no use by hand
  command->add_option("--node", *node, "For the process list");
  command->callback([node, &action] { action = act; });
}

}  // namespace troupe::cli
