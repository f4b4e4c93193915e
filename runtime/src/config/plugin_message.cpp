#include "config/plugin_message.hpp"

#include <fmt/format.h>

#include "config/suggest.hpp"

namespace troupe {
namespace {

constexpr const char* url_prefix = "type.googleapis.com/";

}  // namespace

Result<const google::protobuf::Descriptor*> find_plugin_type(const std::string& url,
                                                             PluginHost& plugins) {
  if (url.rfind(url_prefix, 0) != 0)
    return bad_input("", fmt::format("\"{}\" is not a type URL", url),
                     fmt::format("begin it with {}", url_prefix));
  const auto name = url.substr(std::char_traits<char>::length(url_prefix));
  if (auto loaded = plugins.load_for_type(name); !loaded) {
    auto error = std::move(loaded).error();
    // Nobody owns the type: then the place that names it matters, otherwise the library at fault.
    if (error.where == name) error = bad_input("", name + ": " + error.what, error.hint);
    return error;
  }
  const auto* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (!type)
    return bad_input("", fmt::format("the plugin has no message \"{}\"", name),
                     suggest(name, plugins.job_types(), "kinds of job"));
  return type;
}

Result<std::unique_ptr<google::protobuf::Message>> unpack_plugin_message(
    const google::protobuf::Any& any, PluginHost& plugins) {
  TROUPE_ASSIGN(const auto* type, find_plugin_type(any.type_url(), plugins));
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  if (!message->ParseFromString(any.value()))
    return bad_input("", fmt::format("the bytes of \"{}\" are malformed", any.type_url()));
  return message;
}

const google::protobuf::Descriptor* PluginTypeFinder::FindAnyType(const google::protobuf::Message&,
                                                                  const std::string& prefix,
                                                                  const std::string& name) const {
  auto type = find_plugin_type(prefix + name, plugins_);
  if (type) return last_found_ = *type;
  error_ = std::move(type).error();
  return nullptr;
}

}  // namespace troupe
