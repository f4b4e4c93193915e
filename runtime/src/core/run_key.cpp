#include "core/run_key.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace troupe {

Result<RunKey> RunKey::random() {
  RunKey key;
  ssize_t count = 0;
  do {
    count = getrandom(key.bits_.data(), size, 0);
  } while (count < 0 && errno == EINTR);
  // Requests of up to 256 bytes are answered whole or not at all.
  if (count != static_cast<ssize_t>(size))
    return internal_error("run key", "no random numbers: " + std::string(std::strerror(errno)));
  return key;
}

Result<RunKey> RunKey::from_bytes(const std::string& bytes) {
  if (bytes.size() != size)
    return cluster_error("", "a run key of " + std::to_string(bytes.size()) + " bytes where " +
                                 std::to_string(size) + " are expected");
  RunKey key;
  std::memcpy(key.bits_.data(), bytes.data(), size);
  return key;
}

bool RunKey::equal(const void* other) const {
  const auto* bits = static_cast<const std::uint8_t*>(other);
  unsigned difference = 0;
  for (std::size_t i = 0; i < size; ++i) difference |= bits_[i] ^ bits[i];
  return difference == 0;
}

}  // namespace troupe
