#pragma once

#include <cstdint>

#include "troupe/api.hpp"

namespace troupe {

/// Resident memory of this process, in bytes; 0 where the kernel does not say.
TROUPE_API std::uint64_t resident_bytes();

}  // namespace troupe
