#pragma once

#include "core/plan.hpp"
#include "troupe/model_parallel/host_tensor.hpp"

namespace troupe::mp {

/// The tensors of a file under the names that the plan has for them. Published files of GPT-2 lack
/// the prefix "transformer." and hold the causal masks ("h.0.attn.bias", "h.0.attn.masked_bias"),
/// which are no weights and are left out. Everything else stays as it is, unknown names too.
TensorMap to_plan_names(const Plan& plan, TensorMap tensors);

}  // namespace troupe::mp
