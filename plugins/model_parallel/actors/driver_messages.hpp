#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>

#include "core/batch_feed.hpp"
#include "core/run_progress.hpp"
#include "data/data_source.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/result.hpp"

/// Messages between the driver's own actors. All are local CAF messages; what crosses a link is
/// v1::Message. Runs are numbered as v1::Key says.

namespace troupe::mp {

// --- pipeline <-> data -----------------------------------------------------------------------

/// Pipeline -> data: a run begins that takes the next `batches` batches of the feed of its kind, or
/// those that are left of its epoch. `rewind` starts that feed from its beginning (evaluations).
/// Answered by RunOpened.
struct OpenRun {
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  std::uint64_t batches = 1;
  bool rewind = false;
};

/// Pipeline -> data: a run over inputs that the caller brings. Answered by RunOpened.
struct OpenSuppliedRun {
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  Batch batch;
  std::uint32_t micro_batch_size = 1;
};

/// Data -> pipeline: the run is cut.
struct RunOpened {
  std::uint64_t step = 0;
  std::uint32_t micro_batches = 0;
};

/// Pipeline -> data: send this micro-batch to the stages as soon as its batch is built.
/// Micro-batches of a run are admitted in order.
struct AdmitMicroBatch {
  std::uint32_t micro_batch = 0;
};

/// Data -> builder and back: a batch of a feed.
struct BuildBatch {
  BatchRef ref;
  std::uint32_t batch_size = 0;
};
struct BatchBuilt {
  std::optional<Error> error;
  Batch batch;
};

/// A driver actor -> pipeline: the job cannot go on.
struct DriverFailure {
  Error error;
};

// --- pipeline <-> optimizer ------------------------------------------------------------------

/// Pipeline -> optimizer, when the driver decides itself: what to do once all stages of this step
/// have reported.
struct DecideStep {
  std::uint64_t step = 0;
  bool accumulate = false;
};

// --- client <-> pipeline ---------------------------------------------------------------------
// Commands are requests; one at a time. Each is answered by Reply<...>, with the first error of
// the job once there is one. A command out of order, or with arguments that do not fit, is bad
// input and leaves everything as it was.

template <class T>
struct Reply {
  std::optional<Error> error;
  T value;
};

/// Runs one training step on the next batch. Answered by Reply<StepOutcome>.
struct TrainStep {};

/// Runs all batches of the evaluation feed. Answered by Reply<EvaluationOutcome>.
struct Evaluate {};

/// Runs all batches of the prediction feed, forward only. Answered by Reply<HostTensor>.
struct Predict {};

/// Runs `inputs` forward only. Answered by Reply<HostTensor>.
struct PredictBatch {
  HostTensor inputs;
  std::uint32_t micro_batch_size = 1;
};

/// A training forward whose outputs come back: Reply<HostTensor>.
struct ForwardBatch {
  HostTensor inputs;
  std::uint32_t micro_batch_size = 1;
};

/// The backward of the last ForwardBatch: Reply<Done>.
struct BackwardBatch {
  HostTensor output_gradient;
};

/// Applies the optimizer to the gradients of the backwards so far: Reply<StepOutcome>.
struct ApplyStep {};

/// Gathers all parameters and buffers: Reply<TensorMap>.
struct ExportModel {};

/// Replaces parameters and buffers, by stage: Reply<ModelImported>.
struct ImportModel {
  std::map<std::uint32_t, std::vector<NamedTensor>> tensors;
};
struct ModelImported {
  /// What the stages that were asked compute with.
  std::map<std::uint32_t, runtime::v1::NumericFingerprint> fingerprints;
};

struct Done {};

/// What a step came to.
struct StepOutcome {
  std::uint64_t step = 0;
  LossTotals totals;
  double lr = 0;
  double grad_norm = 0;
  double seconds = 0;
  bool skipped = false;      ///< the gradients overflowed and nothing changed
  double loss_scale = 0;     ///< factor on the loss; 0: none
  bool interrupted = false;  ///< the user asked to stop; the step is complete
  /// By stage: sums of times, activation bytes still held, highest peaks of this step.
  std::vector<v1::StageTimes> times;
};

struct EvaluationOutcome {
  LossTotals totals;
  double seconds = 0;
  bool interrupted = false;  ///< cut short: the totals cover only a part
};

}  // namespace troupe::mp

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::OpenRun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::OpenSuppliedRun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::RunOpened)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::AdmitMicroBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::BuildBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::BatchBuilt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::DriverFailure)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::DecideStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::TrainStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Evaluate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Predict)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::PredictBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ForwardBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::BackwardBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ApplyStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExportModel)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ImportModel)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::StepOutcome>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::EvaluationOutcome>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::HostTensor>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::TensorMap>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::ModelImported>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::Reply<troupe::mp::Done>)
