#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// A header longer than this is refused, as the format's reference implementation does.
inline constexpr std::uint64_t most_safetensors_header_bytes = 100'000'000;

/// The JSON header of a safetensors file, checked: every tensor's bytes lie inside the data, fit
/// its type and shape, and together they cover the data without overlap or hole.
struct SafetensorsHeader {
  struct Entry {
    v1::DType dtype = v1::DTYPE_UNSPECIFIED;
    Shape shape;
    std::uint64_t begin = 0;  ///< offsets into the data that follows the header
    std::uint64_t end = 0;
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;

  /// `data_size`: bytes behind the header. Errors are bad input at `where`, the file's name.
  static Result<SafetensorsHeader> parse(std::string_view json, std::uint64_t data_size,
                                         const std::string& where);

  /// The header as JSON; fails when a name is no UTF-8 text.
  Result<std::string> to_json() const;
};

}  // namespace troupe::mp
