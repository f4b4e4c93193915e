#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Reads the safetensors format: an 8-byte little-endian header length, a JSON header, raw data.
/// Every offset, shape and overlap is checked before memory is trusted; the file is mapped, so
/// tensors are views that live as long as any of them is used.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  std::vector<std::string> names() const;
  /// An error naming the file and those tensors it has, if there is none of this name.
  Result<HostTensor> tensor(const std::string& name) const;
  /// The optional "__metadata__" of the header.
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// Writes to a temporary name in the same directory, syncs, renames: a reader sees the whole file
/// or none.
Result<void> write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace troupe::mp
