#pragma once

#include <cstdint>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Memory for `samples` samples of one shape; content indeterminate. Refuses sizes that overflow
/// or that no machine has; `where` names the field of the config.
Result<HostTensor> allocate_samples(v1::DType dtype, std::uint64_t samples,
                                    const Shape& sample_shape, const std::string& where);

/// The rows named by `order`, copied one after the other. Each index must be inside.
HostTensor gather_rows(const HostTensor& tensor, const std::vector<std::uint64_t>& order);

/// Between floating-point types, to float32 or float64; or from a narrower integer type to int64.
/// The same tensor when there is nothing to do. Any other conversion is an internal error.
Result<HostTensor> convert(const HostTensor& tensor, v1::DType dtype);

/// int8, int16, int32, int64 or uint8.
bool is_integer(v1::DType dtype);

}  // namespace troupe::mp
