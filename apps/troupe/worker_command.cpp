#include "app/worker.hpp"

#include <memory>

#include "common.hpp"

namespace troupe::cli {

void add_worker_command(CLI::App& app, Action& action) {
  auto node = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("worker", "Started by launchers and drivers");
  command->group("");  // hidden: of no use by hand
  command->add_option("--node", *node, "For the process list");
  command->callback([node, &action] { action = [] { return run_worker(); }; });
}

}  // namespace troupe::cli
