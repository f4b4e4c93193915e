#pragma once

#include <filesystem>

#include "troupe/blob.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// The bytes of a regular file, mapped read-only and unmapped with the last copy of the blob.
/// Nothing is read before it is touched. Shortening the file meanwhile is a bus error, which no
/// program that maps files can prevent.
Result<Blob> map_file(const std::filesystem::path& path);

}  // namespace troupe::mp
