#include <cstdio>
#include <memory>

#include "common.hpp"
#include "config/loader.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> sets;
};

Result<std::string> check_job(const Options& options) {
  auto plugins = make_plugin_host();
  TROUPE_ASSIGN(LoadedJob loaded, load_job(options.job, options.sets, *plugins));
  TROUPE_ASSIGN(auto runner, plugins->create_job_runner(loaded.job, loaded.source));
  return runner->check();
}

int check(const Options& options) {
  auto plan = check_job(options);
  if (!plan) return report(plan.error());
  std::fputs(plan->c_str(), stdout);
  if (!plan->empty() && plan->back() != '\n') std::fputc('\n', stdout);
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("check", "Validates a job and prints its plan, without running it");
  command->add_option("job", options->job, "Job file")->required();
  command->add_option("--set", options->sets, "Overrides a field: path=value")
      ->allow_extra_args(false)
      ->take_all();
  command->callback([options, &action] { action = [options] { return check(*options); }; });
}

}  // namespace troupe::cli
