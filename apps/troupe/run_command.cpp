#include <memory>

#include "app/paths.hpp"
#include "common.hpp"
#include "config/loader.hpp"
#include "troupe/log.hpp"
#include "troupe/session.hpp"

namespace troupe::cli {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> sets;
  std::string out;
  bool json = false;
};

Result<void> run_job(const Options& options) {
  auto plugins = make_plugin_host();
  TROUPE_ASSIGN(LoadedJob loaded, load_job(options.job, options.sets, *plugins));
  TROUPE_ASSIGN(auto runner, plugins->create_job_runner(loaded.job, loaded.source));
  // Everything that can be found wrong is, before anything starts.
  TROUPE_TRY(runner->check());
  SessionOptions session_options;
  session_options.out_directory = options.out;
  session_options.json = options.json;
  session_options.plugin_directories = plugins->directories();
  TROUPE_ASSIGN(auto session,
                JobSession::open(loaded.job, session_options, [&](const std::string& node) {
                  return runner->requirements(node);
                }));
  auto outcome = runner->run(*session);
  // What the runner holds of the session's actors goes before the session waits for them.
  runner.reset();
  session.reset();
  return outcome;
}

int run(const Options& options) {
  set_log_node("driver");
  auto outcome = run_job(options);
  return outcome ? 0 : report(outcome.error());
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Runs a job");
  command->add_option("job", options->job, "Job file")->required();
  command
      ->add_option("--set", options->sets,
                   "Overrides a field: path=value; `plugin.` steps into the plugin's message")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--out", options->out, "Output directory (runs/JOB)");
  command->add_flag("--json", options->json, "The result as one JSON object on stdout");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace troupe::cli
