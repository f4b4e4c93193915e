#include "fake/fake_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::mp {
namespace {

class HostStored : public StoredTensor {
 public:
  explicit HostStored(HostTensor tensor) : tensor_(std::move(tensor)) {}
  HostTensor load() const override { return tensor_; }
  std::uint64_t bytes() const override { return tensor_.data.size(); }

 private:
  HostTensor tensor_;
};

class HostMemory : public FakeMemory {
 public:
  std::shared_ptr<const StoredTensor> store(const HostTensor& tensor) override {
    return std::make_shared<HostStored>(tensor);
  }
};

void copy_inverted(const std::byte* from, std::size_t size, std::byte* to) {
  std::transform(from, from + size, to, [](std::byte byte) { return ~byte; });
}

class DeviceStored : public StoredTensor {
 public:
  DeviceStored(const HostTensor& tensor, std::shared_ptr<FakeDeviceUse> use)
      : dtype_(tensor.dtype),
        shape_(tensor.shape),
        buffer_(tensor.data.size()),
        use_(std::move(use)) {
    copy_inverted(tensor.data.data(), buffer_.size(), buffer_.data());
    use_->live_bytes += buffer_.size();
    use_->peak_bytes = std::max(use_->peak_bytes, use_->live_bytes);
  }
  DeviceStored(const DeviceStored&) = delete;
  DeviceStored& operator=(const DeviceStored&) = delete;
  ~DeviceStored() override { use_->live_bytes -= buffer_.size(); }

  HostTensor load() const override {
    HostTensor tensor{dtype_, shape_, Blob::uninitialized(buffer_.size())};
    copy_inverted(buffer_.data(), buffer_.size(), tensor.data.mutable_data());
    return tensor;
  }
  std::uint64_t bytes() const override { return buffer_.size(); }

 private:
  v1::DType dtype_;
  Shape shape_;
  std::vector<std::byte> buffer_;
  std::shared_ptr<FakeDeviceUse> use_;
};

class DeviceMemory : public FakeMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<FakeDeviceUse> use) : use_(std::move(use)) {}
  std::shared_ptr<const StoredTensor> store(const HostTensor& tensor) override {
    return std::make_shared<DeviceStored>(tensor, use_);
  }

 private:
  std::shared_ptr<FakeDeviceUse> use_;
};

}  // namespace

StoredTensor::~StoredTensor() = default;
FakeMemory::~FakeMemory() = default;

std::unique_ptr<FakeMemory> make_host_memory() { return std::make_unique<HostMemory>(); }

std::unique_ptr<FakeMemory> make_device_memory(std::shared_ptr<FakeDeviceUse> use) {
  return std::make_unique<DeviceMemory>(std::move(use));
}

}  // namespace troupe::mp
