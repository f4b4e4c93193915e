#pragma once

#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace troupe::mp::libtorch {

/// The buffers of a batch normalisation that follow its batches.
struct RunningStatistics {
  at::Tensor mean;
  at::Tensor variance;
  at::Tensor batches;  ///< how many there were
};

/// Moments of values, by channel.
struct Moments {
  double count = 0;  ///< of values in each channel
  std::vector<double> mean;
  std::vector<double> squared_deviations;  ///< sums of (value - mean)^2

  /// Those of both sets of values together: Chan, Golub and LeVeque, "Updating formulae and a
  /// pairwise algorithm for computing sample variances", 1979. Exact but for rounding, whatever the
  /// sizes of the sets.
  void add(const Moments& other);
};

/// Batch normalisation deferred (Kim et al., "torchgpipe", 2020): moments of micro-batches are
/// gathered over a step and change the running statistics once, when it ends, as one batch of all
/// its samples would in PyTorch (the variance is the unbiased one). They are pooled in the order in
/// which they are added, which is that of the micro-batches.
class DeferredStatistics {
 public:
  /// For statistics of which `momentum` says how much a new batch counts.
  void add(const RunningStatistics& statistics, double momentum, const Moments& moments);

  /// Updates all statistics that moments were added for.
  void commit();

  void discard() { pending_.clear(); }

 private:
  struct Pending {
    RunningStatistics statistics;
    double momentum = 0;
    Moments moments;
  };
  std::unordered_map<const void*, Pending> pending_;  // by the running mean; order is of no effect
};

}  // namespace troupe::mp::libtorch
