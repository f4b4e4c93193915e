#pragma once

#include <filesystem>
#include <string>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Writes a file under the temporary name `<path>.tmp.<pid>`, syncs it and renames it: a reader
/// sees the old content or the whole new one. Errors (bad_input) name the file.
TROUPE_API Result<void> write_whole_file(const std::filesystem::path& path,
                                         const std::string& content);

}  // namespace troupe
