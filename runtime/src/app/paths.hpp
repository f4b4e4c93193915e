#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// This process's executable.
TROUPE_API std::filesystem::path this_binary();

/// The `troupe` binary that workers are started from: `configured`, TROUPE_BINARY, the one
/// beside this executable, this executable.
TROUPE_API std::filesystem::path worker_binary(const std::filesystem::path& configured);

/// Directories plugins are loaded from: `configured`, TROUPE_PLUGIN_PATH (separated by colons),
/// `../lib/troupe/plugins` beside `binary`.
TROUPE_API std::vector<std::filesystem::path> plugin_directories(
    const std::vector<std::filesystem::path>& configured, const std::filesystem::path& binary);

/// Whether a directory exists or can be created and written to, without creating it. Errors
/// (bad_input) name what is in the way.
TROUPE_API Result<void> check_creatable(const std::filesystem::path& directory);

/// Creates a directory and those above it. Errors (bad_input).
TROUPE_API Result<void> make_directory(const std::filesystem::path& directory);

}  // namespace troupe
