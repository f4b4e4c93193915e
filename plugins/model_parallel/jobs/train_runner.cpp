#include "jobs/train_runner.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/driver.hpp"
#include "core/loss_config.hpp"
#include "data/safetensors.hpp"
#include "jobs/closing_report.hpp"
#include "jobs/metrics_file.hpp"
#include "jobs/run_record.hpp"
#include "jobs/skip_report.hpp"
#include "jobs/train_plan.hpp"
#include "troupe/json.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {
namespace {

using Clock = std::chrono::steady_clock;

/// Up to this many steps each gets a line of its own; beyond, the progress line tells.
constexpr std::uint64_t steps_told_one_by_one = 20;

/// One training job from its first step to its last file.
class Training {
 public:
  Training(JobSession& session, const v1::TrainJob& config, TrainPlan train)
      : session_(session), config_(config), train_(std::move(train)) {
    result_.stages = StageTotals(train_.plan.stages.size());
    result_.classifies = wants_class_indices(config_.loss());
    result_.frequency_loss = train_.frequency_loss;
  }

  Result<void> run() {
    TROUPE_TRY(start());
    TROUPE_TRY(open_files());
    TROUPE_TRY(train());
    if (interrupted_) return stop_early();
    if (has_evaluation() && evaluated_step_ != result_.steps) TROUPE_TRY(evaluate());
    if (interrupted_) return stop_early();
    TROUPE_TRY(save_weights());
    result_.wall_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    result_.skipped_files = skips_.write(session_);
    print_closing_report(session_.console(), train_.plan, result_);
    return {};
  }

 private:
  bool has_evaluation() const { return config_.has_evaluation(); }

  Result<void> start() {
    DriverOptions options;
    options.schedule = config_.schedule();
    options.learning_rates = std::move(train_.learning_rates);
    options.clip_grad_norm = config_.clip_grad_norm();
    options.batches_in_step = train_.batches_in_step;
    options.allow_mixed_numerics = config_.allow_mixed_numerics();
    skips_.watch(train_.training);
    if (train_.evaluation) skips_.watch(*train_.evaluation);
    options.feeds[v1::Key::KIND_TRAIN] = std::move(train_.training);
    if (train_.evaluation) options.feeds[v1::Key::KIND_EVAL] = std::move(*train_.evaluation);
    TROUPE_ASSIGN(driver_, Driver::start(session_, train_.plan, std::move(options)));
    if (!train_.weights) return {};
    TROUPE_TRY(driver_->load_state(*train_.weights, true, config_.init_from()));
    train_.weights.reset();
    return {};
  }

  /// Once the stages are ready and hold their weights: a job that cannot begin changes nothing.
  Result<void> open_files() {
    TROUPE_ASSIGN(
        directory_,
        session_.out_directory(
            {{"run.json", "metrics.jsonl", "weights.safetensors"},
             input_files(config_.init_from(), {config_.data(), config_.evaluation().data()})}));
    TROUPE_TRY(write_run_record(session_, directory_, driver_->numerics()));
    TROUPE_ASSIGN(metrics_, MetricsFile::create(directory_ / "metrics.jsonl"));
    return {};
  }

  Result<void> train() {
    const auto every = has_evaluation() ? config_.evaluation().every_steps() : 0;
    while (result_.steps < train_.steps && !interrupted_) {
      TROUPE_TRY(train_step());
      if (every != 0 && result_.steps % every == 0 && !interrupted_) TROUPE_TRY(evaluate());
    }
    return {};
  }

  Result<void> train_step() {
    TROUPE_ASSIGN(const StepOutcome step, driver_->pipeline().train_step());
    result_.steps = step.step;
    if (step.skipped) ++result_.skipped_steps;
    result_.last_loss = step.totals.loss;
    result_.throughput.add(step.totals.samples, step.seconds);
    result_.stages.add(step.times);
    interrupted_ = step.interrupted;
    TROUPE_TRY(metrics_->append(step));
    tell(step);
    return {};
  }

  void tell(const StepOutcome& step) {
    if (train_.steps <= steps_told_one_by_one) {
      session_.console().line(fmt::format("step {}/{}: loss {:.6g}, {:.3f} s", step.step,
                                          train_.steps, step.totals.loss, step.seconds));
      return;
    }
    const auto left = static_cast<double>(train_.steps - step.step) *
                      static_cast<double>(train_.batches_in_step * config_.batch_size());
    const auto& rate = result_.throughput;
    session_.console().progress(
        static_cast<double>(step.step) / static_cast<double>(train_.steps),
        fmt::format("step {}/{}  loss {:.4f}  {:.0f} samples/s  {} left", step.step, train_.steps,
                    step.totals.loss, rate.recent_rate(), format_duration(rate.seconds_for(left))));
  }

  Result<void> evaluate() {
    TROUPE_ASSIGN(const EvaluationOutcome outcome, driver_->pipeline().evaluate());
    if (outcome.interrupted) {
      interrupted_ = true;
      return {};
    }
    evaluated_step_ = result_.steps;
    result_.evaluation = outcome;
    JsonObject event;
    event.add("event", "evaluation")
        .add("step", result_.steps)
        .add("loss", outcome.totals.loss)
        .add("samples", outcome.totals.samples)
        .add("counted", outcome.totals.counted)
        .add("seconds", outcome.seconds);
    if (result_.classifies) event.add("accuracy", accuracy(outcome.totals));
    session_.record_event(event.text());
    if (result_.steps < train_.steps)
      session_.console().line(fmt::format("step {}: {}", result_.steps,
                                          describe_evaluation(outcome.totals, result_.classifies)));
    return {};
  }

  Result<void> save_weights() {
    if (config_.discard_weights()) return {};
    TROUPE_ASSIGN(const TensorMap state, driver_->pipeline().export_model());
    const auto path = directory_ / "weights.safetensors";
    TROUPE_TRY(write_safetensors(
        path, state, {{"step", std::to_string(result_.steps)}, {"job", session_.job().name()}}));
    result_.weights = path.string();
    return {};
  }

  Result<void> stop_early() {
    TROUPE_TRY(save_weights());
    skips_.write(session_);
    return Error{ErrorCode::interrupted, "step " + std::to_string(result_.steps), "interrupted",
                 result_.weights.empty() ? "" : "its weights are in " + result_.weights};
  }

  JobSession& session_;
  const v1::TrainJob& config_;
  TrainPlan train_;
  std::optional<MetricsFile> metrics_;
  std::filesystem::path directory_;
  std::unique_ptr<Driver> driver_;
  Clock::time_point began_ = Clock::now();
  TrainingResult result_;
  SkipReport skips_;
  std::uint64_t evaluated_step_ = 0;
  bool interrupted_ = false;
};

class TrainRunner : public JobRunner {
 public:
  TrainRunner(JobFile file, v1::TrainJob config)
      : file_(std::move(file)), config_(std::move(config)) {}

  Result<std::string> check() override {
    TROUPE_ASSIGN(const TrainPlan train, make_train_plan(file_, config_));
    return render_plan(train.plan, train.micro_batches);
  }

  Result<WorkerRequirements> requirements(const std::string& node) override {
    return worker_requirements(file_.job, config_.stages(), node);
  }

  Result<void> run(JobSession& session) override {
    TROUPE_ASSIGN(TrainPlan train, make_train_plan(file_, config_));
    return Training(session, config_, std::move(train)).run();
  }

 private:
  JobFile file_;
  v1::TrainJob config_;
};

}  // namespace

Result<std::unique_ptr<JobRunner>> make_train_runner(const runtime::v1::Job& job,
                                                     std::shared_ptr<const ConfigSource> source) {
  return make_runner<TrainRunner, v1::TrainJob>(job, std::move(source));
}

}  // namespace troupe::mp
