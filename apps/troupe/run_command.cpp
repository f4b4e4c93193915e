#include <unistd.h>

#include <memory>

#include "app/paths.hpp"
#include "app/signals.hpp"
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

/// A job that is about to run.
struct Ready {
  std::unique_ptr<PluginHost> plugins;
  LoadedJob loaded;
  std::unique_ptr<JobRunner> runner;
};

/// Finds everything that can be found wrong before anything starts. Nothing is lost by ending in
/// the middle of it.
Result<Ready> make_ready(const Options& options) {
  const SignalWatcher signals([](int) {
    const Error error{ErrorCode::interrupted, "run", "interrupted", "nothing has been started"};
    _exit(report(error));
  });
  Ready ready;
  ready.plugins = make_plugin_host();
  TROUPE_ASSIGN(ready.loaded, load_job(options.job, options.sets, *ready.plugins));
  TROUPE_ASSIGN(ready.runner,
                ready.plugins->create_job_runner(ready.loaded.job, ready.loaded.source));
  TROUPE_TRY(ready.runner->check());
  return ready;
}

Result<void> run_job(const Options& options) {
  // Before there is any thread: plugins and the actor system start some.
  const BlockedSignals blocked;
  TROUPE_ASSIGN(Ready ready, make_ready(options));
  SessionOptions session_options;
  session_options.out_directory = options.out;
  session_options.json = options.json;
  session_options.plugin_directories = ready.plugins->directories();
  TROUPE_ASSIGN(auto session,
                JobSession::open(ready.loaded.job, session_options, [&](const std::string& node) {
                  return ready.runner->requirements(node);
                }));
  auto outcome = session->finish(ready.runner->run(*session));
  // What the runner holds of the session's actors goes before the session waits for them.
  ready.runner.reset();
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
