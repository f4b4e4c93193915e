#pragma once

#include <cstdint>
#include <optional>

namespace troupe::mp {

/// How large the numbers of a data set may be; nothing: unknown, or there are none of that kind.
struct DataBounds {
  std::optional<std::int64_t> tokens;   ///< token ids among the inputs are below this
  std::optional<std::int64_t> classes;  ///< class indices among the targets are below this
};

}  // namespace troupe::mp
