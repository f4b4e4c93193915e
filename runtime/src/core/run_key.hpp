#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// What the processes of one run of a job have in common and strangers do not: 128 random bits,
/// made by the driver. Control requests and frames carry it, and whoever has not got it is not
/// listened to. It keeps out strangers and processes of other runs, not someone who reads the
/// network: without TLS it crosses it as plain text.
class TROUPE_API RunKey {
 public:
  static constexpr std::size_t size = 16;

  /// All zeros: of processes that belong to no run.
  RunKey() = default;

  /// A new key. Error (internal): the kernel has no random numbers to give.
  static Result<RunKey> random();

  /// Error (cluster, without `where`): not `size` bytes.
  static Result<RunKey> from_bytes(const std::string& bytes);

  std::string bytes() const { return {reinterpret_cast<const char*>(bits_.data()), size}; }

  /// Whether these are the bytes of this key.
  bool matches(const std::string& bytes) const {
    return bytes.size() == size && equal(bytes.data());
  }

  friend bool operator==(const RunKey& a, const RunKey& b) { return a.equal(b.bits_.data()); }
  friend bool operator!=(const RunKey& a, const RunKey& b) { return !(a == b); }

 private:
  /// Takes the same time wherever the `size` bytes at `other` differ.
  bool equal(const void* other) const;

  std::array<std::uint8_t, size> bits_{};
};

}  // namespace troupe
