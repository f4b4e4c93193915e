#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// JPEG and PNG files below a directory for each class, decoded when their batch is built, by
/// several threads of which each holds the bytes and the pixels of one image. What a sample looks
/// like depends on (seed, epoch, its number) only.
Result<std::unique_ptr<DataSource>> open_image_folder(const v1::Data& data,
                                                      const DataOptions& options);

}  // namespace troupe::mp
