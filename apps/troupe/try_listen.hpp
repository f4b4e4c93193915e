#pragma once

#include <cstdint>
#include <string>

namespace troupe::cli {

/// Why nothing can listen on `host`:`port` now.
struct ListenFailure {
  int error = 0;     ///< an errno value; 0: the port is free
  std::string text;  ///< what the system says; also set when the host name does not resolve
};

/// Listens there for a moment, as a launcher does.
ListenFailure try_listen(const std::string& host, std::uint16_t port);

}  // namespace troupe::cli
