#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// Tensors of a safetensors file; in file order, batches share the mapped file's memory.
Result<std::unique_ptr<DataSource>> open_tensors(const v1::Data& data, const DataOptions& options);

}  // namespace troupe::mp
