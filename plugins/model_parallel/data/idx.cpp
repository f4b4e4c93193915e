#include "data/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace troupe::mp {

namespace {

constexpr unsigned char unsigned_byte = 0x08;
constexpr int most_idx_dimensions = 8;
constexpr const char* check_path = "check the path, and whether this user may read it";
/// Memory is taken in steps of this as the bytes arrive.
constexpr std::uint64_t read_step = 4 << 20;

/// zlib's reader: decompresses gzip files and passes others through.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path) : file_(::gzopen(path.c_str(), "rbe")) {
    if (file_ != nullptr) ::gzbuffer(file_, 256 << 10);
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader() {
    if (file_ != nullptr) ::gzclose(file_);
  }

  bool is_open() const { return file_ != nullptr; }

  /// Fewer than `size` bytes only at the end of the file or of what can be decompressed.
  std::uint64_t read(void* data, std::uint64_t size) {
    std::uint64_t done = 0;
    while (done < size) {
      const auto step = static_cast<unsigned>(std::min(size - done, read_step));
      const int count = ::gzread(file_, static_cast<char*>(data) + done, step);
      if (count <= 0) break;
      done += static_cast<std::uint64_t>(count);
    }
    return done;
  }

  /// What is wrong with the compressed stream; empty if nothing, or if it just ends early.
  std::string fault() const {
    int code = Z_OK;
    const char* text = ::gzerror(file_, &code);
    if (code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END) return {};
    return code == Z_ERRNO ? strerror(errno) : text;
  }

  /// The compressed stream stops before its end.
  bool ends_early() const {
    int code = Z_OK;
    ::gzerror(file_, &code);
    return code == Z_BUF_ERROR;
  }

 private:
  gzFile file_;
};

Error truncated(const std::string& where, const GzipReader& file, const std::string& expected,
                std::uint64_t found) {
  if (const std::string fault = file.fault(); !fault.empty())
    return bad_input(where, "cannot read: " + fault, "the file is damaged");
  return bad_input(where,
                   "truncated: " + expected + " expected, " + std::to_string(found) + " there",
                   "copy or download it again");
}

Result<Shape> read_shape(GzipReader& file, const std::string& where) {
  std::array<unsigned char, 4> magic{};
  if (const auto got = file.read(magic.data(), magic.size()); got < magic.size())
    return truncated(where, file, "a header of 4 bytes", got);
  if (magic[0] != 0 || magic[1] != 0) return bad_input(where, "not an IDX file");
  if (magic[2] != unsigned_byte)
    return bad_input(where, "IDX element type " + std::to_string(magic[2]),
                     "only unsigned bytes (8) are supported");
  const int dimensions = magic[3];
  if (dimensions < 1 || dimensions > most_idx_dimensions)
    return bad_input(where, std::to_string(dimensions) + " dimensions",
                     "from 1 to " + std::to_string(most_idx_dimensions));
  std::vector<unsigned char> bytes(static_cast<std::size_t>(dimensions) * 4);
  if (const auto got = file.read(bytes.data(), bytes.size()); got < bytes.size())
    return truncated(where, file, std::to_string(bytes.size()) + " bytes of dimensions", got);
  Shape shape;
  for (std::size_t i = 0; i < bytes.size(); i += 4)
    shape.push_back(static_cast<std::int64_t>(bytes[i]) << 24 | bytes[i + 1] << 16 |
                    bytes[i + 2] << 8 | bytes[i + 3]);
  return shape;
}

}  // namespace

Result<HostTensor> read_idx(const std::filesystem::path& path, std::uint64_t limit) {
  const std::string where = path.string();
  if (std::error_code error; !std::filesystem::is_regular_file(path, error))
    return bad_input(where, "no such file", check_path);
  GzipReader file(path);
  if (!file.is_open())
    return bad_input(where, std::string("cannot open: ") + strerror(errno), check_path);
  TROUPE_ASSIGN(Shape shape, read_shape(file, where));
  const bool whole = limit == 0 || limit >= static_cast<std::uint64_t>(shape[0]);
  if (!whole) shape[0] = static_cast<std::int64_t>(limit);
  const auto expected = element_count(shape);
  if (!expected) return bad_input(where, expected.error().what);

  auto bytes = std::make_shared<std::vector<unsigned char>>();
  while (bytes->size() < *expected) {
    const std::uint64_t done = bytes->size();
    const std::uint64_t step = std::min(*expected - done, read_step);
    bytes->resize(done + step);
    if (const auto got = file.read(bytes->data() + done, step); got < step)
      return truncated(where, file,
                       std::to_string(*expected) + " bytes for shape " + to_string(shape),
                       done + got);
  }
  if (whole) {
    // Reading past the end also makes zlib verify the checksum.
    unsigned char extra;
    if (file.read(&extra, 1) != 0)
      return bad_input(where, "longer than its header's shape " + to_string(shape));
    if (const std::string fault = file.fault(); !fault.empty())
      return bad_input(where, "cannot read: " + fault, "the file is damaged");
    if (file.ends_early())
      return bad_input(where, "truncated: its checksum is missing", "copy or download it again");
  }
  HostTensor tensor;
  tensor.dtype = v1::DTYPE_UINT8;
  tensor.shape = std::move(shape);
  tensor.data = Blob::borrowed(bytes->data(), bytes->size(), bytes);
  return tensor;
}

}  // namespace troupe::mp
