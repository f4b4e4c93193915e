#pragma once

#include <vector>

#include "core/optimizer_config.hpp"
#include "core/plan.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"
#include "troupe/result.hpp"

/// Parameters that share their values with a parameter of an earlier layer (`tied_to`): the owner.
/// The owner's stage adds the gradients of all uses in layer order, applies the optimizer, and
/// sends the new values to the stages of the others.

namespace troupe::mp {

/// Checks the tied parameters of a model and gives each its owner's initial values; errors name the
/// parameter.
Result<void> resolve_tied(std::vector<v1::Layer>& layers, const Locate& locate);

/// Tells the stages of a plan what they exchange. Where the owner's stage is frozen or nothing is
/// trained that is nothing. A frozen stage whose weights would change with those of another is an
/// error.
Result<void> connect_tied(std::vector<PlannedStage>& stages, const Locate& locate);

}  // namespace troupe::mp
