#pragma once

#include <functional>
#include <string>

#include <google/protobuf/message.h>

#include "troupe/result.hpp"

namespace troupe {

/// Like `validate` of loader.hpp, for a message that stands at `prefix` ("plugin.") in a larger
/// config: paths in errors and those given to `locate` begin with it.
Result<void> validate_at(const std::string& prefix, const google::protobuf::Message& message,
                         const std::function<std::string(const std::string& path)>& locate);

}  // namespace troupe
