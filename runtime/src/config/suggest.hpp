#pragma once

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "troupe/api.hpp"

namespace troupe {

/// The hint for a name that is none of `known`: `did you mean "x"?` when one is near enough to be
/// a slip of the finger, otherwise `<label>: a, b, c`.
TROUPE_API std::string suggest(const std::string& name, const std::vector<std::string>& known,
                               const std::string& label);

std::vector<std::string> field_names(const google::protobuf::Descriptor& type);
std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type);

}  // namespace troupe
