#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/plugin.hpp"

namespace troupe {

/// Loads plugins, by name or by the protobuf package of a type URL, from configured directories
/// and no others, and keeps what they registered. A library `x.so` is a plugin when a manifest
/// `x.plugin` lies beside it (one protobuf package a line that the plugin owns); nothing is loaded
/// to find out. Libraries are never unloaded. Thread-safe.
class TROUPE_API PluginHost {
 public:
  explicit PluginHost(std::vector<std::filesystem::path> directories);
  ~PluginHost();
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  const std::vector<std::filesystem::path>& directories() const;

  /// Loads the library `<name>.so`; no-op when loaded. Errors: not found (lists the directories),
  /// not loadable (the loader's text), no entry function, another ABI version, another name.
  Result<void> load(const std::string& name);

  /// Loads the plugin that owns the package of this message (full name or type URL). Errors
  /// (bad_input): no plugin owns it (lists the known packages), and those of `load`.
  Result<void> load_for_type(const std::string& type);

  /// Full names of the messages that loaded plugins run as jobs.
  std::vector<std::string> job_types() const;

  /// Names of the plugins found in the directories and whether they are loaded.
  std::vector<std::pair<std::string, bool>> list() const;

  /// Creates an actor; unknown names are errors that list the known ones. Sets
  /// `context.plugin_directory` and `context.plugin_directories`.
  Result<caf::actor> create_actor(const std::string& factory, ActorContext& context,
                                  const google::protobuf::Any& config);

  Result<std::unique_ptr<JobRunner>> create_job_runner(const runtime::v1::Job& job,
                                                       std::shared_ptr<const ConfigSource> source);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
