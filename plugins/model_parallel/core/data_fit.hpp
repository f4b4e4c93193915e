#pragma once

#include <string>

#include "core/data_bounds.hpp"
#include "core/optimizer_config.hpp"
#include "core/plan.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Checks that a model has room for every token and class of its data, as far as the plan tells: an
/// embedding of the batch's inputs has a row for each token, and the linear map before a loss of
/// class indices a row for each class. `path` is the field of the data, which the error (bad_input)
/// names.
Result<void> check_data_fits(const Plan& plan, const DataBounds& bounds, const std::string& path,
                             const Locate& locate);

}  // namespace troupe::mp
