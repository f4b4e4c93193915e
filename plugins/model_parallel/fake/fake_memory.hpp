#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "troupe/model_parallel/host_tensor.hpp"

namespace troupe::mp {

/// Counts what a fake device holds. Shared by its tensors, so that it may be read after the
/// executor is gone. Not thread-safe: an executor is used from one thread.
struct FakeDeviceUse {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

/// A tensor where an executor keeps it between calls.
class StoredTensor {
 public:
  virtual ~StoredTensor();
  /// Its content in host memory.
  virtual HostTensor load() const = 0;
  virtual std::uint64_t bytes() const = 0;
};

/// Where a fake executor keeps its tensors.
class FakeMemory {
 public:
  virtual ~FakeMemory();
  virtual std::shared_ptr<const StoredTensor> store(const HostTensor& tensor) = 0;
};

/// Keeps host tensors as they are.
std::unique_ptr<FakeMemory> make_host_memory();

/// Copies tensors into buffers of its own, in which every byte is inverted: whoever takes such a
/// buffer for host memory reads nonsense, and whoever keeps a host pointer instead of copying is
/// seen in the count.
std::unique_ptr<FakeMemory> make_device_memory(std::shared_ptr<FakeDeviceUse> use);

}  // namespace troupe::mp
