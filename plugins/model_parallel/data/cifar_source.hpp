#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// CIFAR-10 and CIFAR-100 in their binary version: records of one label byte (CIFAR-100: the
/// coarse, then the fine label) and 3,072 pixels, 32 rows of 32 of red, then green, then blue.
/// Files may hold any whole number of records. They are mapped; their labels are checked at once.
Result<std::unique_ptr<DataSource>> open_cifar(const v1::Data& data, const DataOptions& options);

}  // namespace troupe::mp
