#pragma once

#include <cstdint>
#include <filesystem>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Reads an array of bytes in the IDX format of MNIST, gzip-compressed or not: two zero bytes, the
/// element type, the number of dimensions, each dimension as a big-endian 32-bit number, the
/// elements. With `limit` > 0 at most that many entries of the first dimension are read and
/// returned. Memory grows with what the file really holds, whatever its header claims. Errors name
/// the file and what is missing.
Result<HostTensor> read_idx(const std::filesystem::path& path, std::uint64_t limit = 0);

}  // namespace troupe::mp
