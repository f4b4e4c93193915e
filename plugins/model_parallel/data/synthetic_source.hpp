#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// Random images of a standard normal distribution, keyed by (seed, sample number). Endless, the
/// targets belong to the row within the batch and stay the same in every batch, as in PyTorch's
/// RPC example; with `samples`, they belong to the sample.
Result<std::unique_ptr<DataSource>> open_synthetic(const v1::Data& data,
                                                   const DataOptions& options);

}  // namespace troupe::mp
