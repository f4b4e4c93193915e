#include "app/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace troupe {
namespace {

constexpr std::uint32_t max_pipe_message = 1u << 20;
constexpr std::size_t length_bytes = 4;

std::uint32_t decode_length(const char* bytes) {
  std::uint32_t length = 0;
  for (int i = length_bytes - 1; i >= 0; --i)
    length = (length << 8) | static_cast<unsigned char>(bytes[i]);
  return length;
}

std::string frame(const std::string& message) {
  std::string bytes;
  for (std::size_t i = 0; i < length_bytes; ++i)
    bytes += static_cast<char>(message.size() >> (8 * i));
  return bytes + message;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return internal_error("pipe", "cannot make one: " + std::string(std::strerror(errno)));
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

Result<std::string> read_pipe_message(int fd) {
  auto read_exactly = [fd](char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t count = read(fd, data, size);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      data += count;
      size -= static_cast<std::size_t>(count);
    }
    return true;
  };
  char header[length_bytes];
  if (!read_exactly(header, sizeof header)) return internal_error("pipe", "closed");
  const std::uint32_t length = decode_length(header);
  if (length > max_pipe_message) return internal_error("pipe", "message too long");
  std::string message(length, '\0');
  if (!read_exactly(message.data(), length)) return internal_error("pipe", "closed");
  return message;
}

Result<void> write_pipe_message(int fd, const std::string& message) {
  const std::string bytes = frame(message);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return internal_error("pipe", "cannot write: " + std::string(std::strerror(errno)));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

std::optional<std::string> first_pipe_message(const std::string& received) {
  if (received.size() < length_bytes) return std::nullopt;
  const std::size_t length = decode_length(received.data());
  if (received.size() - length_bytes < length) return std::nullopt;
  return received.substr(length_bytes, length);
}

}  // namespace troupe
