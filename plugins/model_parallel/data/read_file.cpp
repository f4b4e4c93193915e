#include "data/read_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace troupe::mp {

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const std::string where = path.string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return bad_input(where, error ? "cannot open: " + error.message() : "no regular file",
                     "check the path, and whether this user may read it");
  const auto size = std::filesystem::file_size(path, error);
  if (error) return bad_input(where, "cannot examine: " + error.message());
  if (size > most_bytes)
    return bad_input(
        where, std::to_string(size) + " bytes, over the limit of " + std::to_string(most_bytes));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return bad_input(where, std::string("cannot open: ") + std::strerror(errno),
                     "check the path, and whether this user may read it");
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(file.gcount()) != size)
    return bad_input(where, "cannot read all of its " + std::to_string(size) + " bytes",
                     "does something still write it?");
  return bytes;
}

}  // namespace troupe::mp
