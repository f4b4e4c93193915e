#include "troupe/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {
namespace {

bool write_all(int fd, const std::string& content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = write(fd, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

Result<void> write_whole_file(const std::filesystem::path& path, const std::string& content) {
  const std::string temporary = path.string() + ".tmp." + std::to_string(getpid());
  const auto failed = [&] {
    const int cause = errno;
    unlink(temporary.c_str());
    return bad_input(path.string(), std::string("cannot write: ") + std::strerror(cause),
                     "make room there, or name another directory with --out");
  };
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failed();
  const bool written = write_all(fd, content) && fsync(fd) == 0;
  const int cause = errno;
  close(fd);
  errno = cause;
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) return failed();
  return {};
}

}  // namespace troupe
