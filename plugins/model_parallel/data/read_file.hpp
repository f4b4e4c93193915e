#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "troupe/result.hpp"

namespace troupe::mp {

/// The bytes of a regular file of at most `most_bytes`. Unlike a mapping, it stays whole when the
/// file is shortened meanwhile.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes);

}  // namespace troupe::mp
