#include "jobs/closing_report.hpp"
#include "troupe/json.hpp"

#include <fmt/format.h>

namespace troupe::mp {
namespace {

std::string stage_line(const Plan& plan, const v1::StageTimes& times) {
  const auto& stage = plan.stages[times.stage()];
  auto line = fmt::format(
      "stage {} on {}: compute {:.2f} s, waiting {:.2f} s, transfer {:.2f} s, "
      "at most {} micro-batches and {:.1f} MB of activations",
      times.stage(), stage.address.node, times.compute(), times.waiting(), times.transfer(),
      times.peak_live_micro_batches(), static_cast<double>(times.peak_live_bytes()) / 1e6);
  // What enters and leaves layers is counted above; this is all that computing them took.
  if (times.peak_compute_bytes() != 0)
    line += fmt::format(" ({:.1f} MB with what layers save and need meanwhile)",
                        static_cast<double>(times.peak_compute_bytes()) / 1e6);
  return line;
}

std::string stage_json(const Plan& plan, const v1::StageTimes& times) {
  return JsonObject()
      .add("stage", std::uint64_t{times.stage()})
      .add("node", plan.stages[times.stage()].address.node)
      .add("compute_seconds", times.compute())
      .add("waiting_seconds", times.waiting())
      .add("transfer_seconds", times.transfer())
      .add("peak_activation_bytes", std::uint64_t{times.peak_live_bytes()})
      .add("peak_compute_bytes", std::uint64_t{times.peak_compute_bytes()})
      .add("peak_micro_batches", std::uint64_t{times.peak_live_micro_batches()})
      .text();
}

std::string result_json(const Plan& plan, const TrainingResult& result) {
  std::string stages;
  for (const auto& times : result.stages.by_stage())
    stages += (stages.empty() ? "" : ", ") + stage_json(plan, times);
  JsonObject json;
  json.add("steps", result.steps)
      .add("skipped_steps", result.skipped_steps)
      .add("loss", result.last_loss)
      .add("wall_seconds", result.wall_seconds)
      .add("training_seconds", result.throughput.seconds())
      .add("samples", result.throughput.samples())
      .add("samples_per_second", result.throughput.mean_rate());
  if (result.evaluation && result.classifies)
    json.add("accuracy", accuracy(result.evaluation->totals));
  if (result.evaluation)
    json.add("evaluation_loss", result.evaluation->totals.loss)
        .add("evaluation_samples", result.evaluation->totals.samples)
        .add("evaluation_counted", result.evaluation->totals.counted);
  if (result.frequency_loss) json.add("frequency_loss", *result.frequency_loss);
  if (result.skipped_files != 0) json.add("skipped_files", result.skipped_files);
  return json.add("weights", result.weights).add_json("stages", "[" + stages + "]").text();
}

}  // namespace

double accuracy(const LossTotals& totals) {
  return totals.counted == 0
             ? 0
             : static_cast<double>(totals.correct) / static_cast<double>(totals.counted);
}

std::string describe_evaluation(const LossTotals& totals, bool classifies) {
  std::string on = fmt::format("{} samples", totals.samples);
  if (totals.counted != totals.samples) on = fmt::format("{} targets of {}", totals.counted, on);
  if (!classifies) return fmt::format("loss {:.6g} on {}", totals.loss, on);
  return fmt::format("accuracy {:.2f} % on {}, loss {:.6g}", 100 * accuracy(totals), on,
                     totals.loss);
}

void print_closing_report(Console& console, const Plan& plan, const TrainingResult& result) {
  const auto& rate = result.throughput;
  console.line(fmt::format(
      "trained {} steps in {} ({:.3f} s a step, {:.1f} samples/s), loss {:.6g}", result.steps,
      format_duration(rate.seconds()), rate.seconds() / static_cast<double>(result.steps),
      rate.mean_rate(), result.last_loss));
  if (result.skipped_steps != 0)
    console.line(fmt::format("{} of these steps changed nothing: gradients overflowed",
                             result.skipped_steps));
  if (result.evaluation)
    console.line(describe_evaluation(result.evaluation->totals, result.classifies));
  if (result.frequency_loss)
    console.line(fmt::format("a model that knows only how frequent each token is: loss {:.6g}",
                             *result.frequency_loss));
  for (const auto& times : result.stages.by_stage()) console.line(stage_line(plan, times));
  if (!result.weights.empty()) console.line("weights in " + result.weights);
  console.line("wall time " + format_duration(result.wall_seconds));
  console.result(result_json(plan, result));
}

}  // namespace troupe::mp
