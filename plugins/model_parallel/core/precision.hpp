#pragma once

#include <string>

#include "core/optimizer_config.hpp"
#include "troupe/api.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/train_job.pb.h"
#include "troupe/result.hpp"

/// What a precision means. Weights, buffers, gradients of weights and the optimizer's state are in
/// the master type; what passes between layers is in the activation type.

namespace troupe::mp {

/// PRECISION_FLOAT32 where nothing is said.
v1::Precision precision_or_default(v1::Precision precision);

/// float64 for PRECISION_FLOAT64, else float32.
TROUPE_API v1::DType master_type(v1::Precision precision);

TROUPE_API v1::DType activation_type(v1::Precision precision);

/// Whether products are computed in a type narrower than that of the weights.
TROUPE_API bool is_mixed(v1::Precision precision);

/// "PRECISION_BFLOAT16".
std::string name_of(v1::Precision precision);

/// Checks that the device ("cpu", "cuda:0", "fake") can compute in this precision.
Result<void> check_precision(v1::Precision precision, const std::string& device,
                             const std::string& where);

}  // namespace troupe::mp
