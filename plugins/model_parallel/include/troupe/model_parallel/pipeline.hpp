#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

/// What a C++ program needs to say to spread a model over the nodes of a session.
struct PipelineOptions {
  v1::Model model;
  std::vector<v1::Stage> stages;
  v1::Optimizer optimizer;
  v1::Schedule schedule = v1::SCHEDULE_GPIPE;  ///< forward and backward are separate calls here
  v1::Precision precision = v1::PRECISION_FLOAT32;
  std::vector<v1::Recompute> recompute;  ///< layers whose activations are computed again
  std::vector<v1::WireType> wire;        ///< types of values between layers; see TrainJob
  std::uint64_t seed = 0;
  double clip_grad_norm = 0;  ///< 0: no clipping
  /// Go on although the nodes differ in what decides the bits of results; see TrainJob.
  bool allow_mixed_numerics = false;
  /// Deferred: running statistics change with `step`, by all samples forwarded since the last one.
  v1::BatchNormStatistics batch_norm = v1::BATCH_NORM_PER_MICRO_BATCH;
  std::vector<std::string> layer_libraries;  ///< that the model needs; see TrainJob
};

/// A model spread over nodes, driven call by call: forward, the caller's own loss, backward, step.
/// All calls block and come from one thread.
///
/// Order: a step is forward, backward, again forward, backward if gradients are to be added up, and
/// then `step`. `predict`, `state` and `load_state` belong between steps: before the first forward
/// or after `step`. A call out of order, or with arguments that do not fit, is bad input and
/// changes nothing; after any other error only the destructor may follow.
class TROUPE_API Pipeline {
 public:
  virtual ~Pipeline();

  /// Runs `inputs` (first dimension: samples) through all stages in training mode, cut into
  /// micro-batches of `micro_batch_size`; returns the last layer's outputs, rows in input order.
  virtual Result<HostTensor> forward(const HostTensor& inputs, std::uint32_t micro_batch_size) = 0;

  /// Sends the gradient of the caller's loss with respect to the outputs of the last `forward`, of
  /// their shape and a floating-point type, back through the stages; parameter gradients accumulate
  /// over calls until `step`.
  virtual Result<void> backward(const HostTensor& output_gradient) = 0;

  /// Applies the optimizer on all stages or on none; returns the global gradient norm.
  virtual Result<double> step() = 0;

  /// Forward only, evaluation mode.
  virtual Result<HostTensor> predict(const HostTensor& inputs, std::uint32_t micro_batch_size) = 0;

  /// All parameters and buffers, gathered from the stages.
  virtual Result<TensorMap> state() = 0;

  /// Replaces parameters and buffers by name; every name must exist.
  virtual Result<void> load_state(const TensorMap& tensors) = 0;
};

/// Spawns the stages on the session's nodes and the pipeline and optimizer actors in this
/// process.
TROUPE_API Result<std::unique_ptr<Pipeline>> spawn_pipeline(JobSession& session,
                                                            const PipelineOptions& options);

}  // namespace troupe::mp
