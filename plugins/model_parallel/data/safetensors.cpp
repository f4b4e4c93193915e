#include "data/safetensors.hpp"

#include <cstring>
#include <utility>

#include "data/mapped_file.hpp"
#include "data/safetensors_header.hpp"

namespace troupe::mp {

namespace {

constexpr std::size_t length_bytes = 8;

std::uint64_t read_little_endian(const std::byte* bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// Names for an error text; a large model's are cut short.
std::string list_names(const std::map<std::string, SafetensorsHeader::Entry>& entries) {
  constexpr int most = 10;
  std::string text;
  int listed = 0;
  for (const auto& [name, entry] : entries) {
    if (listed == most) return text + ", ...";
    text += (listed++ == 0 ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

constexpr const char* copy_again = "copy or download it again";

}  // namespace

struct SafetensorsFile::State {
  std::string path;
  SafetensorsHeader header;
  Blob data;  ///< what follows the header
};

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  TROUPE_ASSIGN(const Blob file, map_file(path));
  const std::string where = path.string();
  if (file.size() < length_bytes)
    return bad_input(where,
                     "truncated: " + std::to_string(file.size()) +
                         " bytes, a safetensors file begins with a length of 8 bytes",
                     copy_again);
  const std::uint64_t header_size = read_little_endian(file.data());
  if (header_size > most_safetensors_header_bytes)
    return bad_input(where, "header of " + std::to_string(header_size) + " bytes, over the limit",
                     "name a safetensors file");
  const std::uint64_t behind = file.size() - length_bytes;
  if (header_size > behind)
    return bad_input(where,
                     "truncated: header of " + std::to_string(header_size) + " bytes, " +
                         std::to_string(behind) + " there",
                     copy_again);
  auto state = std::make_shared<State>();
  state->path = where;
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + length_bytes,
                              header_size);
  TROUPE_ASSIGN(state->header, SafetensorsHeader::parse(json, behind - header_size, where));
  state->data = file.slice(length_bytes + header_size, behind - header_size);
  SafetensorsFile result;
  result.state_ = std::move(state);
  return result;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : state_->header.entries) names.push_back(name);
  return names;
}

Result<HostTensor> SafetensorsFile::tensor(const std::string& name) const {
  const auto found = state_->header.entries.find(name);
  if (found == state_->header.entries.end())
    return bad_input(state_->path, "no tensor '" + name + "'",
                     "it has: " + list_names(state_->header.entries));
  const auto& entry = found->second;
  HostTensor tensor;
  tensor.dtype = entry.dtype;
  tensor.shape = entry.shape;
  tensor.data = state_->data.slice(entry.begin, entry.end - entry.begin);
  // The format does not promise alignment, and reading a misaligned element is undefined.
  if (reinterpret_cast<std::uintptr_t>(tensor.data.data()) % element_size(tensor.dtype) != 0)
    tensor.data = Blob::copy_of(tensor.data.data(), tensor.data.size());
  return tensor;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->header.metadata;
}

}  // namespace troupe::mp
