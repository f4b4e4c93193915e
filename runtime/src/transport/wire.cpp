#include "transport/wire.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/sec.hpp>
#include <caf/serializer.hpp>

namespace troupe {
namespace {

caf::error save_bytes(caf::serializer& sink, const void* data, std::size_t size) {
  std::uint64_t length = size;
  if (auto error = sink(length)) return error;
  return size == 0 ? caf::error{} : sink.apply_raw(size, const_cast<void*>(data));
}

caf::error load_length(caf::deserializer& source, std::uint64_t& length) {
  if (auto error = source(length)) return error;
  // Everything that comes from the network is read from one buffer that has already arrived.
  const auto* buffer = dynamic_cast<caf::binary_deserializer*>(&source);
  if (buffer == nullptr || length > buffer->remaining()) return caf::sec::end_of_stream;
  return {};
}

caf::error load_string(caf::deserializer& source, std::string& text) {
  std::uint64_t length = 0;
  if (auto error = load_length(source, length)) return error;
  text.resize(length);
  return length == 0 ? caf::error{} : source.apply_raw(length, text.data());
}

caf::error load_key(caf::deserializer& source, RunKey& key) {
  std::string bytes(RunKey::size, '\0');
  if (auto error = source.apply_raw(bytes.size(), bytes.data())) return error;
  key = *RunKey::from_bytes(bytes);
  return {};
}

caf::error load_blob(caf::deserializer& source, Blob& blob) {
  std::uint64_t length = 0;
  if (auto error = load_length(source, length)) return error;
  blob = Blob::uninitialized(length);
  return length == 0 ? caf::error{} : source.apply_raw(length, blob.mutable_data());
}

}  // namespace

std::string to_string(const ControlBytes& control) {
  return "control(" + std::to_string(control.bytes.size()) + ")";
}

std::string to_string(const Frame& frame) {
  return "frame(" + frame.from + ", " + to_string(frame.payload) + ")";
}

caf::error inspect(caf::serializer& sink, ControlBytes& control) {
  return save_bytes(sink, control.bytes.data(), control.bytes.size());
}

caf::error inspect(caf::deserializer& source, ControlBytes& control) {
  return load_string(source, control.bytes);
}

caf::error inspect(caf::serializer& sink, Frame& frame) {
  std::string key = frame.run_key.bytes();
  if (auto error = sink.apply_raw(key.size(), key.data())) return error;
  if (auto error = save_bytes(sink, frame.from.data(), frame.from.size())) return error;
  if (auto error = save_bytes(sink, frame.header.data(), frame.header.size())) return error;
  return save_bytes(sink, frame.payload.data(), frame.payload.size());
}

caf::error inspect(caf::deserializer& source, Frame& frame) {
  if (auto error = load_key(source, frame.run_key)) return error;
  if (auto error = load_string(source, frame.from)) return error;
  if (auto error = load_string(source, frame.header)) return error;
  return load_blob(source, frame.payload);
}

void add_wire_types(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::troupe_wire>();
}

}  // namespace troupe
