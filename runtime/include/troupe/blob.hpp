#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "troupe/api.hpp"

namespace troupe {

/// Immutable bytes shared by reference: a payload on its way between actors. Copying a Blob
/// bumps a reference count. The bytes belong to `owner`, which may be an allocation of this
/// class, a tensor's storage or a mapped file; they live until the last copy is gone and must not
/// change after the Blob has been handed on. Copies may be used from any thread.
class TROUPE_API Blob {
 public:
  /// Alignment of every buffer this class allocates.
  static constexpr std::size_t alignment = 64;

  Blob() = default;

  /// A new buffer of `size` bytes with indeterminate content, aligned to 64 bytes.
  /// `mutable_data` is for its only owner to fill it, before the first copy.
  static Blob uninitialized(std::size_t size);

  /// A copy of `size` bytes at `data`.
  static Blob copy_of(const void* data, std::size_t size);

  /// Bytes that `owner` keeps alive; nothing is copied.
  static Blob borrowed(const void* data, std::size_t size, std::shared_ptr<const void> owner);

  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// A part of this blob, sharing its memory. The range must lie inside.
  Blob slice(std::size_t offset, std::size_t size) const;

 private:
  Blob(const std::byte* data, std::size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

/// For logs: the size, never the bytes.
TROUPE_API std::string to_string(const Blob& blob);

}  // namespace troupe
