#include "core/loss_scaler.hpp"

#include <cmath>
#include <limits>

namespace troupe::mp {
namespace {

double or_default(double value, double fallback) { return value != 0 ? value : fallback; }

}  // namespace

LossScaler::LossScaler(const v1::LossScaling& config)
    : scale_(or_default(config.initial_scale(), 65536)),
      growth_factor_(or_default(config.growth_factor(), 2)),
      backoff_factor_(or_default(config.backoff_factor(), 0.5)),
      growth_interval_(config.growth_interval() != 0 ? config.growth_interval() : 2000) {}

void LossScaler::step_done(bool overflow) {
  if (overflow) {
    scale_ *= backoff_factor_;
    steps_ = 0;
    return;
  }
  if (++steps_ != growth_interval_) return;
  steps_ = 0;
  // GradScaler keeps its scale in float32 and does not let it become infinite.
  const double grown = scale_ * growth_factor_;
  if (grown <= std::numeric_limits<float>::max()) scale_ = grown;
}

}  // namespace troupe::mp
