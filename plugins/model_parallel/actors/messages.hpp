#pragma once

#include <functional>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>

#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

/// Messages between a stage actor and its executor actor. All are local CAF messages; what crosses
/// a link is v1::Message. The stage sends one operation at a time and gets one ExecutorDone for it.

namespace troupe::mp {

/// Stage -> executor: create layers and parameters. The first message; answered with
/// ExecutorDone<NumericFingerprint>.
struct InitialiseExecutor {
  v1::StageConfig config;
};

/// Stage -> executor: answered with ExecutorDone<ForwardOutcome>.
struct RunForward {
  ForwardTask task;
};

/// Stage -> executor: answered with ExecutorDone<BackwardOutcome>.
struct RunBackward {
  BackwardTask task;
};

/// Stage -> executor: gradients that other stages have of weights here. Answered with
/// ExecutorDone<Nothing>.
struct TakeTiedGradients {
  std::vector<Value> gradients;
};

/// Stage -> executor: answered with ExecutorDone<std::vector<Value>>.
struct ExportTiedValues {};

/// Stage -> executor: answered with ExecutorDone<GradientSummary>.
struct SummariseGradients {};

/// Stage -> executor: answered with ExecutorDone<Nothing>.
struct RunUpdate {
  StepUpdate update;
};

/// Stage -> executor: answered with ExecutorDone<std::vector<NamedTensor>>.
struct ExportExecutorState {};

/// Stage -> executor: answered with ExecutorDone<Nothing>.
struct ImportExecutorState {
  std::vector<NamedTensor> tensors;
};

/// Stage -> executor: forget micro-batches and gradients. No answer.
struct DiscardAll {};

/// The value of an operation that has none.
struct Nothing {};

/// Executor -> stage: an operation is over.
template <class T>
struct ExecutorDone {
  Result<T> result;
  double seconds = 0;  ///< from the call to its completion
};

/// Executor -> itself: goes on after a delay (drills under a simulated clock).
struct ResumeOperation {
  std::function<void()> operation;
};

}  // namespace troupe::mp

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::InitialiseExecutor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::RunForward)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::RunBackward)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::TakeTiedGradients)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExportTiedValues)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<std::vector<troupe::mp::Value>>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::SummariseGradients)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::RunUpdate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExportExecutorState)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ImportExecutorState)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::DiscardAll)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<troupe::runtime::v1::NumericFingerprint>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<troupe::mp::ForwardOutcome>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<troupe::mp::BackwardOutcome>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<troupe::mp::GradientSummary>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<troupe::mp::Nothing>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ExecutorDone<std::vector<troupe::mp::NamedTensor>>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mp::ResumeOperation)
