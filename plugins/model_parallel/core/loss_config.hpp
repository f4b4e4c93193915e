#pragma once

#include <cstdint>
#include <string>

#include "core/optimizer_config.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/loss.pb.h"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

/// What a loss's config says, with defaults filled in.

namespace troupe::mp {

/// Checks that the kind of a custom loss is one of a loss, and that numbers are not told to be
/// ignored by index.
Result<void> check_loss(const v1::Loss& loss, const Locate& locate);

/// Kind and attributes of the layer that computes this loss.
void set_loss_kind(const v1::Loss& loss, v1::Layer& layer);

/// Whether its targets are class indices, as against numbers like the outputs; neither is true of
/// no loss.
bool wants_class_indices(const v1::Loss& loss);
bool wants_numbers(const v1::Loss& loss);

/// "mean squared error", for errors.
std::string describe(const v1::Loss& loss);

/// The class index whose targets do not count.
std::int64_t ignore_index_of(const v1::Loss& loss);

/// Over what a loss is a mean, for one tensor of targets after another.
class TargetCount {
 public:
  /// Samples.
  TargetCount() = default;
  explicit TargetCount(const v1::Loss& loss)
      : of_targets_(wants_class_indices(loss)), ignored_(ignore_index_of(loss)) {}

  /// Whether targets of the same number of samples may count differently.
  bool depends_on_targets() const { return of_targets_; }

  /// How many count among these targets, whose first dimension is that of the samples; floating
  /// targets, which are probabilities of all classes, count by the sample.
  std::uint64_t in(const HostTensor& targets) const;

 private:
  bool of_targets_ = false;
  std::int64_t ignored_ = 0;
};

}  // namespace troupe::mp
