#include "libtorch/deferred_statistics.hpp"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

namespace troupe::mp::libtorch {
namespace {

/// running = (1 - momentum) * running + momentum * values, in double.
void follow(const at::Tensor& running, double momentum, const std::vector<double>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const at::Tensor latest = at::empty({count}, at::TensorOptions().dtype(at::kDouble));
  std::copy(values.begin(), values.end(), latest.data_ptr<double>());
  running.copy_(running.to(at::kDouble) * (1 - momentum) + latest.to(running.device()) * momentum);
}

}  // namespace

void Moments::add(const Moments& other) {
  if (count == 0) {
    *this = other;
    return;
  }
  const double sum = count + other.count;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double difference = other.mean[c] - mean[c];
    mean[c] += difference * (other.count / sum);
    squared_deviations[c] +=
        other.squared_deviations[c] + difference * difference * (count * (other.count / sum));
  }
  count = sum;
}

void DeferredStatistics::add(const RunningStatistics& statistics, double momentum,
                             const Moments& moments) {
  auto& pending = pending_[statistics.mean.unsafeGetTensorImpl()];
  pending.statistics = statistics;
  pending.momentum = momentum;
  pending.moments.add(moments);
}

void DeferredStatistics::commit() {
  const c10::NoGradGuard no_grad;
  for (auto& [key, pending] : pending_) {
    auto& moments = pending.moments;
    for (auto& squares : moments.squared_deviations) squares /= moments.count - 1;
    follow(pending.statistics.mean, pending.momentum, moments.mean);
    follow(pending.statistics.variance, pending.momentum, moments.squared_deviations);
    pending.statistics.batches.add_(1);
  }
  pending_.clear();
}

}  // namespace troupe::mp::libtorch
