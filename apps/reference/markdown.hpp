#pragma once

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

/// A part of the reference: a title and the message that begins it.
struct Section {
  std::string title;
  const google::protobuf::Descriptor* root;
};

/// The configuration reference in Markdown: for each section its root and every message and enum
/// that it can hold, each once. What has no comment is appended to `undocumented`.
std::string reference_markdown(const std::vector<Section>& sections,
                               std::vector<std::string>& undocumented);
