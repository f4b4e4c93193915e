#pragma once

#include <functional>
#include <string>

#include <google/protobuf/message.h>

#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// Checks a message that stands at `prefix` ("plugin.") in a larger config against the options of
/// its fields: ranges, required fields and members of oneofs, numbers of elements. Paths in errors
/// and those given to `locate`, which turns them into places, begin with the prefix.
TROUPE_API Result<void> validate_at(
    const std::string& prefix, const google::protobuf::Message& message,
    const std::function<std::string(const std::string& path)>& locate);

}  // namespace troupe
