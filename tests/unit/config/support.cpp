#include "unit/config/support.hpp"

#include <stdlib.h>

#include <fstream>
#include <memory>

#include <google/protobuf/message.h>
#include <boost/test/unit_test.hpp>

namespace troupe::testing {

namespace fs = std::filesystem;

ConfigFile::ConfigFile(const std::string& text) {
  auto pattern = (fs::temp_directory_path() / "troupe-config-XXXXXX").string();
  BOOST_REQUIRE(mkdtemp(pattern.data()));
  directory_ = pattern;
  path_ = directory_ / "file.textproto";
  std::ofstream(path_, std::ios::binary) << text;
}

ConfigFile::~ConfigFile() { fs::remove_all(directory_); }

Result<LoadedJob> ConfigFile::load_job(const std::vector<std::string>& sets) const {
  PluginHost plugins({fs::path(TROUPE_BINARY_DIR) / "tests" / "plugins" / "good"});
  return troupe::load_job(path_, sets, plugins);
}

Result<runtime::v1::Node> ConfigFile::load_node(const std::vector<std::string>& sets) const {
  return troupe::load_node(path_, sets);
}

std::string ConfigFile::job_error(const std::vector<std::string>& sets) const {
  const auto loaded = load_job(sets);
  if (loaded) return "";
  BOOST_TEST(exit_code(loaded.error().code) == 2);
  return shorten(loaded.error().to_string());
}

std::string ConfigFile::node_error(const std::vector<std::string>& sets) const {
  const auto loaded = load_node(sets);
  if (loaded) return "";
  BOOST_TEST(exit_code(loaded.error().code) == 2);
  return shorten(loaded.error().to_string());
}

std::string ConfigFile::shorten(std::string text) const {
  const auto name = path_.string();
  const auto at = text.find(name);
  return at == std::string::npos ? text : text.replace(at, name.size(), "FILE");
}

std::string job_with(const std::string& plugin_fields) {
  return "name: \"job\"\nnodes { name: \"a\" }\n"
         "plugin { [type.googleapis.com/troupe.test.v1.TestJob] {\n" +
         plugin_fields + "} }\n";
}

std::string plugin_text(const LoadedJob& job) {
  const auto* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
      "troupe.test.v1.TestJob");
  BOOST_REQUIRE(type);
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  BOOST_REQUIRE(message->ParseFromString(job.job.plugin().value()));
  return message->ShortDebugString();
}

}  // namespace troupe::testing
