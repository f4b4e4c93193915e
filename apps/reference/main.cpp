// Writes the configuration reference.
// usage: troupe_reference DESCRIPTOR_SET OUTPUT TITLE=MESSAGE...
// The set comes from `protoc --include_imports --include_source_info`. Fails when a message, field
// or value that belongs into the reference has no comment.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.pb.h>

#include "markdown.hpp"

namespace {

int fail(const std::string& text) {
  std::fprintf(stderr, "troupe_reference: %s\n", text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return fail("usage: troupe_reference DESCRIPTOR_SET OUTPUT TITLE=MESSAGE...");
  google::protobuf::FileDescriptorSet files;
  std::ifstream input(argv[1], std::ios::binary);
  if (!files.ParseFromIstream(&input)) return fail(std::string(argv[1]) + ": no descriptor set");
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) {
    if (!pool.BuildFile(file)) return fail(file.name() + ": does not build");
  }
  std::vector<Section> sections;
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    const auto* root = equals == std::string::npos
                           ? nullptr
                           : pool.FindMessageTypeByName(argument.substr(equals + 1));
    if (!root) return fail(argument + ": no such message");
    sections.push_back({argument.substr(0, equals), root});
  }
  std::vector<std::string> undocumented;
  const auto text = reference_markdown(sections, undocumented);
  for (const auto& name : undocumented) fail(name + " has no comment in its .proto file");
  if (!undocumented.empty()) return 1;
  std::ofstream output(argv[2], std::ios::binary);
  output << text;
  output.close();
  return output ? 0 : fail(std::string(argv[2]) + ": cannot be written");
}
