#include "data/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace troupe::mp {

namespace {

using Json = nlohmann::json;
using Entry = SafetensorsHeader::Entry;

constexpr std::size_t most_tensor_dimensions = 64;
constexpr const char* metadata_key = "__metadata__";

constexpr std::array<std::pair<const char*, v1::DType>, 10> type_names = {{
    {"F32", v1::DTYPE_FLOAT32},
    {"F64", v1::DTYPE_FLOAT64},
    {"I64", v1::DTYPE_INT64},
    {"I32", v1::DTYPE_INT32},
    {"I16", v1::DTYPE_INT16},
    {"I8", v1::DTYPE_INT8},
    {"U8", v1::DTYPE_UINT8},
    {"BOOL", v1::DTYPE_BOOL},
    {"BF16", v1::DTYPE_BFLOAT16},
    {"F16", v1::DTYPE_FLOAT16},
}};

/// Receives the JSON piece by piece and accepts exactly the structure of the format:
/// { name: { "dtype": text, "shape": [n, ...], "data_offsets": [n, n] }, ...,
///   "__metadata__": { text: text, ... } }.
/// Deeper nesting is refused where it begins, so that no input makes the parser recurse or build a
/// document. Every callback returns false after the first fault, which ends parsing.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  const std::string& fault() const { return fault_; }

  bool start_object(std::size_t) override {
    if (level_ == Level::outside) return enter(Level::root);
    if (level_ != Level::root) return fail("nested object" + in_tensor());
    entry_ = Entry();
    seen_.clear();
    return enter(name_ == metadata_key ? Level::metadata : Level::tensor);
  }

  bool key(string_t& text) override {
    if (level_ == Level::root) {
      name_ = text;
      if (name_ == metadata_key ? metadata_seen_ : header_.entries.count(name_) != 0)
        return fail("'" + name_ + "' appears twice");
      return true;
    }
    field_ = text;
    if (std::find(seen_.begin(), seen_.end(), field_) != seen_.end())
      return fail("'" + field_ + "' appears twice" + in_tensor());
    seen_.push_back(field_);
    if (level_ == Level::tensor && field_ != "dtype" && field_ != "shape" &&
        field_ != "data_offsets")
      return fail("unknown field '" + field_ + "'" + in_tensor());
    return true;
  }

  bool end_object() override {
    if (level_ == Level::root) return enter(Level::outside);
    if (level_ == Level::metadata) {
      metadata_seen_ = true;
      return enter(Level::root);
    }
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (std::find(seen_.begin(), seen_.end(), field) == seen_.end())
        return fail(std::string("no ") + field + in_tensor());
    header_.entries[name_] = std::move(entry_);
    return enter(Level::root);
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::tensor || field_ == "dtype") return fail("misplaced list" + in_tensor());
    numbers_.clear();
    return enter(Level::list);
  }

  bool end_array() override {
    level_ = Level::tensor;
    if (field_ == "shape") {
      entry_.shape.assign(numbers_.begin(), numbers_.end());
      return true;
    }
    if (numbers_.size() != 2) return fail("data_offsets are not two numbers" + in_tensor());
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (level_ != Level::list) return fail("misplaced number" + in_tensor());
    if (numbers_.size() == most_tensor_dimensions) return fail("too many dimensions" + in_tensor());
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fail("number out of range" + in_tensor());
    numbers_.push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (level_ == Level::metadata) {
      header_.metadata[field_] = text;
      return true;
    }
    if (level_ != Level::tensor || field_ != "dtype") return fail("misplaced text" + in_tensor());
    for (const auto& [name, dtype] : type_names)
      if (text == name) entry_.dtype = dtype;
    if (entry_.dtype == v1::DTYPE_UNSPECIFIED)
      return fail("element type '" + text + "' is not supported" + in_tensor());
    return true;
  }

  bool null() override { return fail("misplaced null" + in_tensor()); }
  bool boolean(bool) override { return fail("misplaced truth value" + in_tensor()); }
  bool number_integer(number_integer_t) override { return fail("negative number" + in_tensor()); }
  bool number_float(number_float_t, const string_t&) override {
    return fail("number that is no integer" + in_tensor());
  }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail("malformed JSON at byte " + std::to_string(position) + " of the header");
  }

 private:
  enum class Level { outside, root, tensor, metadata, list };

  bool enter(Level level) {
    level_ = level;
    return true;
  }

  bool fail(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    return false;
  }

  std::string in_tensor() const {
    return level_ == Level::outside || level_ == Level::root ? " in the header"
                                                             : " in '" + name_ + "'";
  }

  SafetensorsHeader& header_;
  Level level_ = Level::outside;
  std::string name_;
  std::string field_;
  Entry entry_;
  std::vector<std::string> seen_;
  std::vector<std::uint64_t> numbers_;
  bool metadata_seen_ = false;
  std::string fault_;
};

/// Each tensor against its own type and shape.
Result<void> check_sizes(const SafetensorsHeader& header, std::uint64_t data_size,
                         const std::string& where) {
  for (const auto& [name, entry] : header.entries) {
    const std::string range = std::to_string(entry.begin) + " to " + std::to_string(entry.end);
    if (entry.begin > entry.end || entry.end > data_size)
      return bad_input(where,
                       "tensor '" + name + "' lies at bytes " + range + " of " +
                           std::to_string(data_size) + " bytes of data",
                       "the file is truncated or damaged");
    const auto count = element_count(entry.shape);
    const std::uint64_t size = element_size(entry.dtype);
    if (!count || *count > std::numeric_limits<std::uint64_t>::max() / size ||
        *count * size != entry.end - entry.begin)
      return bad_input(where, "tensor '" + name + "': " + to_string(entry.dtype) + " of shape " +
                                  to_string(entry.shape) + " does not fit bytes " + range);
  }
  return {};
}

/// All tensors together: sorted by position, each begins where the one before ends.
Result<void> check_cover(const SafetensorsHeader& header, std::uint64_t data_size,
                         const std::string& where) {
  std::vector<const std::pair<const std::string, Entry>*> sorted;
  for (const auto& item : header.entries) sorted.push_back(&item);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t position = 0;
  for (const auto* item : sorted) {
    if (item->second.begin < position)
      return bad_input(where, "tensor '" + item->first + "' overlaps another one",
                       "write the file again");
    if (item->second.begin > position)
      return bad_input(where, "unused bytes before tensor '" + item->first + "'",
                       "write the file again");
    position = item->second.end;
  }
  if (position != data_size)
    return bad_input(where,
                     std::to_string(data_size - position) + " unused bytes behind the last tensor",
                     "write the file again");
  return {};
}

}  // namespace

Result<SafetensorsHeader> SafetensorsHeader::parse(std::string_view json, std::uint64_t data_size,
                                                   const std::string& where) {
  SafetensorsHeader header;
  HeaderReader reader(header);
  if (!Json::sax_parse(json.begin(), json.end(), &reader))
    return bad_input(where, reader.fault().empty() ? "malformed JSON header" : reader.fault(),
                     "name a safetensors file");
  TROUPE_TRY(check_sizes(header, data_size, where));
  TROUPE_TRY(check_cover(header, data_size, where));
  return header;
}

Result<std::string> SafetensorsHeader::to_json() const {
  Json json = Json::object();
  for (const auto& [name, entry] : entries) {
    const char* type = "";
    for (const auto& [text, dtype] : type_names)
      if (dtype == entry.dtype) type = text;
    json[name] = {
        {"dtype", type}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  if (!metadata.empty()) json[metadata_key] = metadata;
  try {
    return json.dump();
  } catch (const Json::exception&) {
    return bad_input("safetensors", "a name or metadata text is not valid UTF-8");
  }
}

}  // namespace troupe::mp
