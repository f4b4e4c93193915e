#pragma once

#include <functional>
#include <optional>
#include <string>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Checks the optimizer of a training, wherever it was written: there is one, its learning rate is
/// given, every number is finite and in its range, and they go together. `locate` turns a field's
/// path ("optimizer.sgd.lr") into the place an error names.
Result<void> check_optimizer(const std::optional<v1::Optimizer>& optimizer,
                             const std::function<std::string(const std::string&)>& locate);

/// The same for the limit of the gradient norm; 0 means that there is none.
Result<void> check_clip_grad_norm(double limit, const std::string& where);

}  // namespace troupe::mp
