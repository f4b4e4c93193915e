#pragma once

#include <memory>
#include <optional>
#include <string>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "plugin/host.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// The message type of a type URL; loads the plugin that owns it. Errors have no `where`.
Result<const google::protobuf::Descriptor*> find_plugin_type(const std::string& url,
                                                             PluginHost& plugins);

/// The message inside an Any, as an object of its generated type. Errors have no `where`.
Result<std::unique_ptr<google::protobuf::Message>> unpack_plugin_message(
    const google::protobuf::Any& any, PluginHost& plugins);

/// Lets the text parser find the type of an Any by loading its plugin. The parser only hears
/// "not found"; why is in `error` afterwards.
class PluginTypeFinder final : public google::protobuf::TextFormat::Finder {
 public:
  explicit PluginTypeFinder(PluginHost& plugins) : plugins_(plugins) {}

  const google::protobuf::Descriptor* FindAnyType(const google::protobuf::Message& message,
                                                  const std::string& prefix,
                                                  const std::string& name) const override;

  /// The error of the last search that failed.
  const std::optional<Error>& error() const { return error_; }

  /// The type of the last search that succeeded, or null.
  const google::protobuf::Descriptor* last_found() const { return last_found_; }

 private:
  PluginHost& plugins_;
  mutable std::optional<Error> error_;
  mutable const google::protobuf::Descriptor* last_found_ = nullptr;
};

}  // namespace troupe
