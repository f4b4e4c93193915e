#pragma once

#include <cstdint>
#include <string>

#include "troupe/api.hpp"

namespace troupe {

/// Version of this build, `major.minor.patch`.
TROUPE_API const char* version();

/// Hash (FNV-1a) of the runtime's protobuf descriptors. Two processes with the same hash read each
/// other's control messages and frame headers field by field.
TROUPE_API std::uint64_t descriptor_hash();

/// What this was built with, one `name version` a line: compiler, CAF, Protobuf.
TROUPE_API std::string build_description();

}  // namespace troupe
