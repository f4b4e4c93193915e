#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The tensors, by the stage that owns each name. Names that no stage has, shapes that differ from
/// the plan, and, when `complete` is asked for, names that are missing are errors; `where` is what
/// they name as their place (a file).
Result<std::map<std::uint32_t, std::vector<NamedTensor>>> split_state(const Plan& plan,
                                                                      const TensorMap& tensors,
                                                                      bool complete,
                                                                      const std::string& where);

}  // namespace troupe::mp
