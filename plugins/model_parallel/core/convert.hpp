#pragma once

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Between floating-point types, to float32 or float64; or from a narrower integer type to int64.
/// The same tensor when there is nothing to do. Any other conversion is an internal error.
Result<HostTensor> convert(const HostTensor& tensor, v1::DType dtype);

}  // namespace troupe::mp
