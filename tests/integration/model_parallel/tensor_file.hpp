#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/process.hpp"

namespace troupe::test {

/// A tensor of a safetensors file.
struct FileTensor {
  std::string type;
  std::vector<std::int64_t> shape;
  std::string bytes;

  bool operator==(const FileTensor& other) const {
    return type == other.type && shape == other.shape && bytes == other.bytes;
  }
  bool operator!=(const FileTensor& other) const { return !(*this == other); }

  template <class T>
  std::vector<T> as() const {
    std::vector<T> elements(bytes.size() / sizeof(T));
    std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
    return elements;
  }
};

/// Reads a safetensors file independently of the library under test; it throws what JSON throws.
inline std::map<std::string, FileTensor> read_tensors(const std::string& path) {
  const std::string file = read_text(path);
  if (file.size() < 8) throw std::runtime_error(path + ": no safetensors file");
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), 8);
  const auto header = nlohmann::json::parse(file.substr(8, header_size));
  std::map<std::string, FileTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
    tensors[name] = {entry.at("dtype"), entry.at("shape"),
                     file.substr(8 + header_size + begin, end - begin)};
  }
  return tensors;
}

}  // namespace troupe::test
