#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe::mp {

/// A micro-batch in an executor's eyes.
struct MicroBatch {
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  std::uint32_t index = 0;  ///< within the step
  std::uint32_t samples = 0;
  std::uint64_t first_sample = 0;  ///< index of its first sample in the epoch: keys randomness
  double weight = 1;          ///< its share of what the loss of the whole batch is the mean over
  std::uint64_t counted = 0;  ///< what the loss counts here: samples, or targets not ignored
};

/// Called exactly once, on any thread.
template <class T>
using Completion = std::function<void(Result<T>)>;

struct ForwardTask {
  MicroBatch micro_batch;
  /// One value for each `inbound` of the StageConfig, in that order.
  std::vector<Value> inputs;
};

struct LossValue {
  double loss = 0;  ///< mean over what counts in the micro-batch; 0 where nothing does
  /// How many of those are classified correctly, in evaluation only; 0 when that means nothing.
  std::uint64_t correct = 0;
};

struct ForwardOutcome {
  /// One value for each `outbound` of the StageConfig, in that order.
  std::vector<Value> outputs;
  /// Set by the stage that holds the loss layer; not in a prediction without targets. A missing
  /// target is an error in training and evaluation.
  bool has_loss = false;
  LossValue loss;
  std::uint64_t live_bytes = 0;  ///< activation bytes the executor holds for this micro-batch
  /// Most bytes held during this operation by it and by all live micro-batches: activations, what
  /// layers saved, and what operations needed meanwhile; 0: not measured.
  std::uint64_t peak_compute_bytes = 0;
};

struct BackwardTask {
  MicroBatch micro_batch;
  /// One gradient for each `outbound`, in that order; `absent` where there is none. Each is
  /// complete for all readers in later stages.
  std::vector<Value> output_gradients;
  double loss_scale = 1;  ///< factor on the gradient of the loss, where it starts here
};

struct BackwardOutcome {
  /// One gradient for each `inbound`, in that order; `absent` where the value needs none.
  std::vector<Value> input_gradients;
  std::uint64_t peak_compute_bytes = 0;  ///< as in ForwardOutcome
};

struct GradientSummary {
  /// Squared 2-norm of each parameter's accumulated gradient, summed in double, in layer order.
  /// A tied parameter counts with its owner, after all uses are added up, and is 0 itself.
  std::vector<double> squared_norms;
  bool finite = true;
  /// The accumulated gradient of each use in the config's `tied_copies`, in that order; `absent`
  /// where there is none.
  std::vector<Value> tied_gradients;
};

struct StepUpdate {
  std::vector<double> lr;  ///< by group of parameters (core/optimizer_config.hpp)
  double scale = 1;        ///< factor on every gradient before the optimizer sees it
  bool skip = false;       ///< only clear the gradients
};

/// A tensor of a stage's state with the name it has in files.
struct NamedTensor {
  std::string name;
  HostTensor tensor;
  bool buffer = false;
};

/// Computes the layers of one stage. The interface is asynchronous, so that device queues fit
/// behind it: a call may return before its completion has run.
///
/// Thread: all calls come from one thread; completions may run on any. Calls complete in the
/// order in which they were made. After an error the executor only accepts `discard_all`.
///
/// Exactness: at every layer boundary, also between layers of this stage, values are detached and
/// brought to the stage's floating-point type and to a declared layout: values to that of the layer
/// that reads them, gradients to that of the layer that wrote the value. So results do not depend
/// on where a model is cut. Where a layer declares a wire type, its outputs and each sum of their
/// gradients are rounded to it too. Gradients of a value are added from its last reader to its
/// first; those of parameters accumulate in the order of the backward calls. [life:4]
class TROUPE_API StageExecutor {
 public:
  virtual ~StageExecutor();

  /// Creates the layers and their parameters; random initial values are keyed by
  /// (config.seed, parameter name). Called once, first.
  virtual Result<void> initialise(const v1::StageConfig& config) = 0;

  /// What decides the bits of results here, as far as this process knows: the BLAS kernel that is
  /// loaded, versions of libraries, device and threads. Valid once `initialise` has succeeded; what
  /// the machine decides (CPU model, instruction set) is left empty.
  virtual runtime::v1::NumericFingerprint fingerprint() const = 0;

  /// Runs the layers in order. For KIND_TRAIN the inputs and outputs of each layer are kept until
  /// `backward` of the same micro-batch has completed; otherwise nothing is kept.
  virtual void forward(ForwardTask task, Completion<ForwardOutcome> done) = 0;

  /// Runs the layers backwards, adds to the parameters' gradients and forgets the micro-batch.
  /// On the stage with the loss layer the backward starts from the loss, scaled by the
  /// micro-batch's weight.
  virtual void backward(BackwardTask task, Completion<BackwardOutcome> done) = 0;

  /// Takes what other stages accumulated for the config's `tied_weights` since the last `update`:
  /// one for each use in another stage, in that order. The next summary and the next update add
  /// them to what was accumulated here, in layer order; what was taken before is forgotten.
  virtual void take_tied_gradients(std::vector<Value> gradients, Completion<void> done) = 0;

  /// Norms of the gradients accumulated since the last `update`.
  virtual void summarise_gradients(Completion<GradientSummary> done) = 0;

  /// Applies the optimizer and clears the gradients.
  virtual void update(StepUpdate update, Completion<void> done) = 0;

  /// Copies of the parameters in the config's `tied_weights`, in that order; `absent` for those
  /// that no other stage shares.
  virtual void export_tied_values(Completion<std::vector<Value>> done) = 0;

  /// Copies of all parameters, then all buffers, in layer order; without tied parameters, which
  /// are their owners'.
  virtual void export_state(Completion<std::vector<NamedTensor>> done) = 0;

  /// Replaces parameters and buffers by name, converted to the stage's types. Names that the stage
  /// does not have, shapes that do not fit and types that cannot be converted (see can_import) are
  /// errors naming the tensor; names that are missing keep their value. A tied parameter whose
  /// owner is in another stage goes by its own name, and sets all that share its values here.
  virtual void import_state(std::vector<NamedTensor> tensors, Completion<void> done) = 0;

  /// Forgets every micro-batch and gradient (abort of a step).
  virtual void discard_all() = 0;
};

/// Libraries of layers outside the plugin (see layer_library.hpp).
struct LayerLibraries {
  std::vector<std::string> names;        ///< NAME.so lies in one of the directories
  std::vector<std::string> directories;  ///< in the order of search
};

/// Creates an executor for a device name ("cpu", "cuda:0", "fake", "fake-device"); a device that
/// does not exist is an error that lists those that do. For real devices the library
/// `troupe_mp_libtorch.so` in `plugin_directory` is loaded on first use, and then the layer
/// libraries; fake ones refuse any.
TROUPE_API Result<std::unique_ptr<StageExecutor>> create_executor(
    const std::string& device, const std::string& plugin_directory,
    const LayerLibraries& libraries = {});

/// Entry function of the executor library: `extern "C" troupe_mp_executors()`.
struct ExecutorLibrary {
  std::uint32_t abi_version;  ///< plugin_abi_version
  Result<std::unique_ptr<StageExecutor>> (*create)(const std::string& device,
                                                   const LayerLibraries& libraries);
};

}  // namespace troupe::mp
