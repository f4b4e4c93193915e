#include "troupe/blob.hpp"

#include <cstring>
#include <new>

namespace troupe {

Blob Blob::uninitialized(std::size_t size) {
  if (size == 0) return {};
  auto* data = static_cast<std::byte*>(::operator new (size, std::align_val_t{alignment}));
  std::shared_ptr<const void> owner(data, [](const void* p) {
    ::operator delete (const_cast<void*>(p), std::align_val_t{alignment});
  });
  return Blob(data, size, std::move(owner));
}

Blob Blob::copy_of(const void* data, std::size_t size) {
  Blob blob = uninitialized(size);
  if (size != 0) std::memcpy(blob.mutable_data(), data, size);
  return blob;
}

Blob Blob::borrowed(const void* data, std::size_t size, std::shared_ptr<const void> owner) {
  return Blob(static_cast<const std::byte*>(data), size, std::move(owner));
}

Blob Blob::slice(std::size_t offset, std::size_t size) const {
  return Blob(data_ + offset, size, owner_);
}

std::string to_string(const Blob& blob) { return "blob(" + std::to_string(blob.size()) + ")"; }

}  // namespace troupe
