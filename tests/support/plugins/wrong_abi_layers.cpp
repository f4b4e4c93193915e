// A layer library as another version of Troupe would see it: of what it returns, only the version
// is known to be there.
#include <cstdint>

#include "troupe/api.hpp"

extern "C" TROUPE_API const std::uint32_t* troupe_layer_library() {
  static constexpr std::uint32_t abi_version = 4711;
  return &abi_version;
}
