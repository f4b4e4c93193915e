#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/safetensors.hpp"
#include "data/safetensors_header.hpp"

namespace troupe::mp {

namespace {

constexpr std::size_t header_alignment = 8;

/// A file under a temporary name, removed unless it is renamed to its final one.
class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path final_path)
      : path_(std::move(final_path)),
        temporary_(path_.string() + ".tmp." + std::to_string(::getpid())),
        fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (fd_ >= 0) {
      ::close(fd_);
      ::unlink(temporary_.c_str());
    }
  }

  bool is_open() const { return fd_ >= 0; }

  bool write(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    while (size != 0) {
      const ssize_t written = ::write(fd_, bytes, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes += written;
      size -= static_cast<std::size_t>(written);
    }
    return true;
  }

  /// Syncs the content, renames, and syncs the directory, in this order: after a power cut the
  /// name refers to the old file or to the whole new one.
  bool commit() {
    if (::fsync(fd_) != 0) return false;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
    ::close(std::exchange(fd_, -1));
    const auto parent = path_.has_parent_path() ? path_.parent_path() : ".";
    const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    const bool synced = ::fsync(directory) == 0;
    ::close(directory);
    return synced;
  }

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int fd_;
};

/// The tensors in the order of their data: wide elements first, so that every tensor is aligned
/// behind the aligned header; then by name.
std::vector<const TensorMap::value_type*> data_order(const TensorMap& tensors) {
  std::vector<const TensorMap::value_type*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return element_size(a->second.dtype) > element_size(b->second.dtype);
  });
  return order;
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                               const std::map<std::string, std::string>& metadata) {
  const auto order = data_order(tensors);
  SafetensorsHeader header;
  header.metadata = metadata;
  std::uint64_t position = 0;
  for (const auto* item : order) {
    const HostTensor& tensor = item->second;
    if (item->first == "__metadata__")
      return bad_input(path.string(), "a tensor cannot be called '__metadata__'");
    if (auto valid = tensor.validate(); !valid)
      return bad_input(path.string(), "tensor '" + item->first + "': " + valid.error().what);
    const std::uint64_t end = position + tensor.data.size();
    header.entries[item->first] = {tensor.dtype, tensor.shape, position, end};
    position = end;
  }
  TROUPE_ASSIGN(std::string json, header.to_json());
  json.resize((json.size() + header_alignment - 1) / header_alignment * header_alignment, ' ');
  if (json.size() > most_safetensors_header_bytes)
    return bad_input(path.string(), "too many tensors for the format's header");
  char length[8];
  for (std::size_t i = 0; i < sizeof length; ++i)
    length[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);

  PendingFile file(path);
  const auto failed = [&] {
    return bad_input(path.string(), std::string("cannot write: ") + strerror(errno));
  };
  if (!file.is_open()) return failed();
  if (!file.write(length, sizeof length) || !file.write(json.data(), json.size())) return failed();
  for (const auto* item : order)
    if (!file.write(item->second.data.data(), item->second.data.size())) return failed();
  if (!file.commit()) return failed();
  return {};
}

}  // namespace troupe::mp
