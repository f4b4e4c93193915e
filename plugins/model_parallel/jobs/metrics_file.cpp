#include "jobs/metrics_file.hpp"
#include "troupe/json.hpp"

#include <cerrno>
#include <cstring>
#include <string>

namespace troupe::mp {

Result<MetricsFile> MetricsFile::create(const std::filesystem::path& path) {
  MetricsFile metrics;
  metrics.path_ = path;
  metrics.file_.reset(std::fopen(path.c_str(), "w"));
  if (!metrics.file_)
    return bad_input(path.string(), std::string("cannot write: ") + std::strerror(errno));
  return metrics;
}

Result<void> MetricsFile::append(const StepOutcome& step) {
  const auto samples = static_cast<double>(step.totals.samples);
  JsonObject object;
  object.add("step", step.step)
      .add("loss", step.totals.loss)
      .add("lr", step.lr)
      .add("grad_norm", step.grad_norm)
      .add("samples", step.totals.samples)
      .add("counted", step.totals.counted)
      .add("seconds", step.seconds)
      .add("samples_per_second", samples / step.seconds);
  if (step.loss_scale != 0)
    object.add("loss_scale", step.loss_scale).add("skipped", std::uint64_t{step.skipped});
  const std::string line = object.text() + "\n";
  if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0)
    return bad_input(path_.string(), std::string("cannot write: ") + std::strerror(errno));
  return {};
}

}  // namespace troupe::mp
