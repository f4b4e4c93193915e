#include "actor/version.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/stubs/common.h>
#include <caf/config.hpp>

#include "troupe/runtime/v1/control.pb.h"
#include "troupe/runtime/v1/link.pb.h"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {
namespace {

std::uint64_t fnv1a(std::uint64_t hash, const std::string& bytes) {
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

void add_file(std::uint64_t& hash, const google::protobuf::FileDescriptor& file) {
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  // Options are for the validator and the reference; they do not change what goes over the wire.
  for (auto& message : *proto.mutable_message_type())
    for (auto& field : *message.mutable_field()) field.clear_options();
  hash = fnv1a(hash, proto.SerializeAsString());
}

}  // namespace

const char* version() { return TROUPE_VERSION; }

std::uint64_t descriptor_hash() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  add_file(hash, *runtime::v1::Request::descriptor()->file());
  add_file(hash, *runtime::v1::Job::descriptor()->file());
  add_file(hash, *runtime::v1::Node::descriptor()->file());
  add_file(hash, *runtime::v1::FrameHeader::descriptor()->file());
  return hash;
}

std::string build_description() {
  return fmt::format("compiler {}\ncaf {}.{}.{}\nprotobuf {}", __VERSION__, CAF_MAJOR_VERSION,
                     CAF_MINOR_VERSION, CAF_PATCH_VERSION,
                     google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
}

}  // namespace troupe
