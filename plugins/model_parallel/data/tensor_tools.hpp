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

}  // namespace troupe::mp
