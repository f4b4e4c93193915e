#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// Images and labels in IDX files: `idx`, or `fashion_mnist` with its known files and statistics.
/// Pixels stay bytes in memory and are normalised batch by batch.
Result<std::unique_ptr<DataSource>> open_images(const v1::Data& data, const DataOptions& options);

}  // namespace troupe::mp
