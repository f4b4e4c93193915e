#include "data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace troupe::mp {

namespace {

/// Owner of a mapping.
struct Mapping {
  void* address;
  std::size_t size;
  ~Mapping() { ::munmap(address, size); }
};

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<Blob> map_file(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    return bad_input(path.string(), std::string("cannot open: ") + strerror(errno),
                     "check the path, and whether this user may read it");
  struct stat status;
  if (::fstat(file.fd, &status) != 0)
    return bad_input(path.string(), std::string("cannot examine: ") + strerror(errno));
  if (!S_ISREG(status.st_mode))
    return bad_input(path.string(), "not a regular file", "name a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return Blob();
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED)
    return bad_input(path.string(), std::string("cannot map: ") + strerror(errno));
  return Blob::borrowed(address, size, std::shared_ptr<Mapping>(new Mapping{address, size}));
}

}  // namespace troupe::mp
