#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>
#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include "troupe/api.hpp"
#include "troupe/mailer.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/job.pb.h"
#include "troupe/spawn.hpp"

namespace troupe {

class JobSession;

/// Grows whenever anything in the headers that plugins are compiled against changes.
inline constexpr std::uint32_t plugin_abi_version = 3;

/// What an actor factory is given on the node where the actor will live.
struct ActorContext {
  caf::actor_system& system;
  ExecutionPolicy policy;
  Mailer mailer;
  ActorAddress self;             ///< where the new actor will be bound
  std::string plugin_directory;  ///< of the plugin that owns the factory: for companion libraries
  /// All that this node loads plugins from, in the order of search: for libraries that a config
  /// names.
  std::vector<std::string> plugin_directories;
};

/// Creates an actor from a typed config; errors travel back to whoever asked for the actor.
/// Called on the node actor's thread: it must not compute or block for long.
using ActorFactory =
    std::function<Result<caf::actor>(ActorContext&, const google::protobuf::Any& config)>;

/// What a job wants of the process that will host one of its nodes. Environment variables are
/// set before that process loads any library that reads them.
struct WorkerRequirements {
  std::map<std::string, std::string> environment;
};

/// The driver side of a plugin's kind of job. One object a job.
class TROUPE_API JobRunner {
 public:
  virtual ~JobRunner();

  /// Validates what the config's ranges cannot say and resolves the plan; runs nothing, touches
  /// no node. The text is what `troupe check` prints. Errors carry the field's position where the
  /// job's source is known (see ConfigSource).
  virtual Result<std::string> check() = 0;

  virtual Result<WorkerRequirements> requirements(const std::string& node) = 0;

  /// Runs the job to its end; called on the driver's main thread and may block.
  virtual Result<void> run(JobSession& session) = 0;
};

/// Where the fields of a job file stand, for errors found after loading.
class TROUPE_API ConfigSource {
 public:
  virtual ~ConfigSource();
  /// `file:line:column` of a field inside the plugin's message, by path ("stages[1].first_layer");
  /// of the nearest enclosing field when that one is not written; the file's name at worst.
  virtual std::string locate_plugin_field(const std::string& path) const = 0;
};

using JobRunnerFactory = std::function<Result<std::unique_ptr<JobRunner>>(
    const runtime::v1::Job& job, std::shared_ptr<const ConfigSource> source)>;

/// What a plugin adds to. Lives as long as the process.
class TROUPE_API Registry {
 public:
  virtual ~Registry();

  /// `name` is unique in the process, by convention `<plugin>.<actor>`.
  virtual Result<void> add_actor(const std::string& name, ActorFactory factory) = 0;

  /// Jobs whose `plugin` Any holds this message type (full name) are run by this factory.
  virtual Result<void> add_job(const google::protobuf::Descriptor& type,
                               JobRunnerFactory factory) = 0;
};

/// What `troupe_plugin` returns. Plain data, so that a library built against other headers can
/// still be recognised and refused.
struct PluginDescriptor {
  std::uint32_t abi_version;
  const char* name;
  const char* version;
  /// Null-terminated list of protobuf packages whose messages this plugin owns: how the loader
  /// finds the library for a type URL.
  const char* const* packages;
  /// Adds to `registry`; returns false and sets `*error` on failure.
  bool (*register_plugin)(Registry& registry, std::string* error);
};

}  // namespace troupe

/// Every plugin defines this entry function: `TROUPE_PLUGIN_ENTRY { return &descriptor; }`.
#define TROUPE_PLUGIN_ENTRY extern "C" TROUPE_API const ::troupe::PluginDescriptor* troupe_plugin()
