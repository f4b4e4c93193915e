#pragma once

#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// a + b, element by element, in the tensors' own precision; an absent side counts as nothing.
/// Both must be float32 or float64 and of one shape.
Result<Value> add_values(const Value& a, const Value& b);

/// The gradient of a value with several readers: added from the last reader to the first, as a
/// backward through one list of layers reaches them. `by_reader` is in reader order.
Result<Value> sum_gradients(const std::vector<Value>& by_reader);

}  // namespace troupe::mp
