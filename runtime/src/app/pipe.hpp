#pragma once

#include <optional>
#include <string>
#include <utility>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

// Pipes between a process and its children, and the messages on them: 4 bytes of length,
// little-endian, then the bytes.

namespace troupe {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

/// A pipe that children do not inherit.
Result<Pipe> make_pipe();

/// Reads one message from a pipe, blocking. Errors: the pipe ended, or the length is no message's.
TROUPE_API Result<std::string> read_pipe_message(int fd);
/// Writes one, blocking.
TROUPE_API Result<void> write_pipe_message(int fd, const std::string& message);

/// The first message of what has been read so far; none until it is complete.
std::optional<std::string> first_pipe_message(const std::string& received);

}  // namespace troupe
