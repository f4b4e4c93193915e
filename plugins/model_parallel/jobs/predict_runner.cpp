#include "jobs/predict_runner.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/driver.hpp"
#include "data/safetensors.hpp"
#include "jobs/job_setup.hpp"
#include "jobs/run_record.hpp"
#include "jobs/throughput.hpp"
#include "troupe/json.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {
namespace {

struct PredictPlan {
  Plan plan;
  FeedConfig feed;
  std::optional<TensorMap> weights;
};

Result<PredictPlan> make_predict_plan(const JobFile& file, const v1::PredictJob& config) {
  TROUPE_TRY(check_micro_batch_size(file, config.batch_size(), config.micro_batch_size()));
  TROUPE_TRY(check_output_name(file, config.output()));
  PredictPlan predict;
  TROUPE_ASSIGN(PlanRequest request, plan_request(file, config));
  request.train = false;
  TROUPE_ASSIGN(predict.plan, make_plan(request));
  FeedRequest feed;
  feed.data = config.data();
  feed.path = "data";
  feed.seed = file.job.seed();
  feed.dtype = dtype_of(config.precision());
  feed.need_targets = false;
  feed.batch_size = config.batch_size();
  feed.micro_batch_size = config.micro_batch_size();
  TROUPE_ASSIGN(predict.feed, open_feed(file, feed));
  TROUPE_TRY(check_feed(file, predict.plan, predict.feed, "data"));
  if (!config.init_from().empty()) {
    TROUPE_ASSIGN(predict.weights, read_weights(predict.plan, config.init_from()));
  }
  return predict;
}

class PredictRunner : public JobRunner {
 public:
  PredictRunner(JobFile file, v1::PredictJob config)
      : file_(std::move(file)), config_(std::move(config)) {}

  Result<std::string> check() override {
    TROUPE_ASSIGN(const PredictPlan predict, make_predict_plan(file_, config_));
    return render_plan(predict.plan, (config_.batch_size() + config_.micro_batch_size() - 1) /
                                         config_.micro_batch_size());
  }

  Result<WorkerRequirements> requirements(const std::string& node) override {
    return worker_requirements(file_.job, config_.stages(), node);
  }

  Result<void> run(JobSession& session) override {
    TROUPE_ASSIGN(PredictPlan predict, make_predict_plan(file_, config_));
    DriverOptions options;
    options.feeds[v1::Key::KIND_INFER] = std::move(predict.feed);
    options.allow_mixed_numerics = config_.allow_mixed_numerics();
    TROUPE_ASSIGN(const auto driver, Driver::start(session, predict.plan, std::move(options)));
    if (predict.weights)
      TROUPE_TRY(driver->load_state(*predict.weights, true, config_.init_from()));
    const std::string output = config_.output().empty() ? "outputs.safetensors" : config_.output();
    TROUPE_ASSIGN(const auto directory,
                  session.out_directory(
                      {{"run.json", output}, input_files(config_.init_from(), {config_.data()})}));
    TROUPE_TRY(write_run_record(session, directory, driver->numerics()));
    const auto began = std::chrono::steady_clock::now();
    TROUPE_ASSIGN(const HostTensor outputs, driver->pipeline().predict());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    const auto path = directory / output;
    TROUPE_TRY(write_safetensors(path, {{"outputs", outputs}}));
    report(session.console(), outputs, seconds.count(), path);
    return {};
  }

 private:
  static void report(Console& console, const HostTensor& outputs, double seconds,
                     const std::filesystem::path& path) {
    const auto samples = static_cast<std::uint64_t>(outputs.shape[0]);
    console.line(fmt::format("predicted {} samples in {} ({:.1f} samples/s)", samples,
                             format_duration(seconds), static_cast<double>(samples) / seconds));
    console.line("outputs " + to_string(outputs.shape) + " in " + path.string());
    console.result(JsonObject()
                       .add("samples", samples)
                       .add("seconds", seconds)
                       .add("outputs", path.string())
                       .text());
  }

  JobFile file_;
  v1::PredictJob config_;
};

}  // namespace

Result<std::unique_ptr<JobRunner>> make_predict_runner(const runtime::v1::Job& job,
                                                       std::shared_ptr<const ConfigSource> source) {
  return make_runner<PredictRunner, v1::PredictJob>(job, std::move(source));
}

}  // namespace troupe::mp
