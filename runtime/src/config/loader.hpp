#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/host.hpp"
#include "troupe/plugin.hpp"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/runtime/v1/node.pb.h"

namespace troupe {

struct LoadedJob {
  runtime::v1::Job job;
  std::shared_ptr<const ConfigSource> source;
};

/// Reads a job file, loads the plugin its type URL names, applies `sets` (`path=value`, in
/// order), validates ranges and required fields of both messages. Errors are bad_input with
/// `file:line:column` (or `--set path`) as `where`.
TROUPE_API Result<LoadedJob> load_job(const std::filesystem::path& file,
                                      const std::vector<std::string>& sets, PluginHost& plugins);

/// The same for a node file, which has no plugin message.
TROUPE_API Result<runtime::v1::Node> load_node(const std::filesystem::path& file,
                                               const std::vector<std::string>& sets);

/// Checks the `range`, `required`, `min_items` and `oneof_required` options of a message and of
/// those inside it. `locate` turns a field path into a position.
TROUPE_API Result<void> validate(const google::protobuf::Message& message,
                                 const std::function<std::string(const std::string& path)>& locate);

}  // namespace troupe
