#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "troupe/api.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Whether a tensor of a file may become one of the model: floating-point types are converted to
/// each other, and integers to each other.
TROUPE_API bool can_import(v1::DType from, v1::DType to);

/// The error for a tensor that `can_import` refuses; `where` as below.
TROUPE_API Error wrong_type(const std::string& where, const std::string& name, v1::DType from,
                            v1::DType to);

/// The type in which a stage of this precision keeps a parameter or buffer.
TROUPE_API v1::DType state_type(const v1::Parameter& tensor, v1::Precision precision);

/// The tensors, by the stage that owns each name. Tied parameters get their owner's tensor, under
/// their own name in stages that do not have the owner; a tensor under their name in `tensors` must
/// have the same values. Names that no stage has, shapes that differ from
/// the plan, types that cannot be imported, and, when `complete` is asked for, names that are
/// missing are errors; `where` is what they name as their place (a file).
Result<std::map<std::uint32_t, std::vector<NamedTensor>>> split_state(const Plan& plan,
                                                                      const TensorMap& tensors,
                                                                      bool complete,
                                                                      const std::string& where);

}  // namespace troupe::mp
