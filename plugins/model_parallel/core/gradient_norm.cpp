#include "core/gradient_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/bits.hpp"

namespace troupe::mp {

Result<void> GradientNorm::add(const v1::StepReport& report) {
  if (report.stage() >= reports_.size() || reports_[report.stage()])
    return internal_error("optimizer",
                          "unexpected step report of stage " + std::to_string(report.stage()));
  reports_[report.stage()] = report;
  ++seen_;
  return {};
}

std::vector<const v1::StepReport*> GradientNorm::in_model_order() const {
  std::vector<const v1::StepReport*> ordered;
  for (const auto& report : reports_)
    if (report) ordered.push_back(&*report);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](auto* a, auto* b) { return a->first_parameter() < b->first_parameter(); });
  return ordered;
}

double GradientNorm::norm() const {
  double sum = 0;
  for (const auto* report : in_model_order())
    for (auto bits : report->squared_norm_bits()) sum += double_from_bits(bits);
  return std::sqrt(sum);
}

bool GradientNorm::finite() const {
  return std::all_of(reports_.begin(), reports_.end(),
                     [](const auto& report) { return !report || report->finite(); }) &&
         !first_non_finite();
}

std::optional<std::uint32_t> GradientNorm::first_non_finite() const {
  for (const auto* report : in_model_order())
    for (int i = 0; i < report->squared_norm_bits_size(); ++i)
      if (!std::isfinite(double_from_bits(report->squared_norm_bits(i))))
        return report->first_parameter() + static_cast<std::uint32_t>(i);
  return std::nullopt;
}

std::vector<v1::StageTimes> GradientNorm::times() const {
  std::vector<v1::StageTimes> times;
  for (const auto& report : reports_)
    if (report) times.push_back(report->times());
  return times;
}

double clip_factor(double norm, double max_norm) {
  if (max_norm == 0) return 1;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace troupe::mp
