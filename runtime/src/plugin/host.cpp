#include "plugin/host.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "troupe/log.hpp"

namespace troupe {

/// An actor that a plugin of this directory registered.
struct RegisteredActor {
  ActorFactory create;
  std::string directory;
};

namespace {

namespace fs = std::filesystem;

constexpr const char* entry_name = "troupe_plugin";

/// A plugin as its manifest describes it, loaded or not.
struct Manifest {
  std::string name;
  fs::path library;
  std::vector<std::string> packages;
};

struct Owner {
  std::string plugin;
  std::string package;
};

std::vector<std::string> read_packages(const fs::path& manifest) {
  std::vector<std::string> packages;
  std::ifstream stream(manifest);
  std::string line;
  while (std::getline(stream, line)) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    packages.push_back(line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1));
  }
  return packages;
}

/// The plugins of all directories; of two with one name, the earlier directory's counts.
std::vector<Manifest> find_manifests(const std::vector<fs::path>& directories) {
  std::vector<Manifest> found;
  std::set<std::string> names;
  for (const auto& directory : directories) {
    std::vector<fs::path> files;
    std::error_code ignored;  // a directory that is not there holds no plugins
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
      if (entry.path().extension() == ".plugin") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      auto library = fs::path(file).replace_extension(".so");
      const auto name = file.stem().string();
      if (!fs::exists(library, ignored) || !names.insert(name).second) continue;
      found.push_back({name, std::move(library), read_packages(file)});
    }
  }
  return found;
}

std::string joined_directories(const std::vector<fs::path>& directories) {
  std::vector<std::string> names;
  for (const auto& directory : directories) names.push_back(directory.string());
  return names.empty() ? "no directory is configured" : fmt::format("{}", fmt::join(names, ", "));
}

template <class Names>
std::string listed(const Names& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string without_url_prefix(const std::string& type) {
  const auto slash = type.rfind('/');
  return slash == std::string::npos ? type : type.substr(slash + 1);
}

/// What a plugin registers, kept apart until its entry function has succeeded: a plugin is
/// registered as a whole or not at all.
class StagedRegistry final : public Registry {
 public:
  StagedRegistry(const std::map<std::string, RegisteredActor>& known_actors,
                 const std::map<std::string, JobRunnerFactory>& known_jobs, std::string plugin)
      : known_actors_(known_actors), known_jobs_(known_jobs), plugin_(std::move(plugin)) {}

  Result<void> add_actor(const std::string& name, ActorFactory factory) override {
    if (known_actors_.count(name) || !actors.emplace(name, std::move(factory)).second)
      return internal_error("plugin " + plugin_,
                            fmt::format("actor factory \"{}\" is registered twice", name));
    return {};
  }

  Result<void> add_job(const google::protobuf::Descriptor& type,
                       JobRunnerFactory factory) override {
    if (known_jobs_.count(type.full_name()) ||
        !jobs.emplace(type.full_name(), std::move(factory)).second)
      return internal_error("plugin " + plugin_,
                            fmt::format("job type \"{}\" is registered twice", type.full_name()));
    return {};
  }

  std::map<std::string, ActorFactory> actors;
  std::map<std::string, JobRunnerFactory> jobs;

 private:
  const std::map<std::string, RegisteredActor>& known_actors_;
  const std::map<std::string, JobRunnerFactory>& known_jobs_;
  std::string plugin_;
};

/// Opens the library and checks what its entry function returns.
Result<const PluginDescriptor*> open_library(const Manifest& manifest) {
  const auto where = manifest.library.string();
  // RTLD_LOCAL: two plugins may each bring a symbol of the same name. The handle is kept for
  // ever: actors, descriptors and vtables of the plugin live as long as the process.
  void* handle = dlopen(where.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return bad_input(where, fmt::format("the library cannot be loaded: {}", dlerror()),
                     "rebuild or reinstall the plugin");
  auto* entry = reinterpret_cast<const PluginDescriptor* (*)()>(dlsym(handle, entry_name));
  if (!entry)
    return bad_input(where, fmt::format("not a plugin: no entry function \"{}\"", entry_name),
                     "remove the library or its manifest");
  const PluginDescriptor* descriptor = entry();
  if (!descriptor) return bad_input(where, "the plugin's entry function returned nothing");
  // Nothing behind the version may be read before it is known to be ours.
  if (descriptor->abi_version != plugin_abi_version)
    return bad_input(where,
                     fmt::format("built for plugin ABI {}, this process has {}",
                                 descriptor->abi_version, plugin_abi_version),
                     "rebuild the plugin against this version of Troupe");
  if (!descriptor->name || manifest.name != descriptor->name)
    return bad_input(where,
                     fmt::format("the plugin calls itself \"{}\", its file \"{}\"",
                                 descriptor->name ? descriptor->name : "", manifest.name),
                     "rename the library and its manifest");
  std::set<std::string> owned;
  for (auto package = descriptor->packages; package && *package; ++package) owned.insert(*package);
  for (const auto& package : manifest.packages) {
    if (!owned.count(package))
      return bad_input(
          where, fmt::format("the manifest names package \"{}\", which the plugin lacks", package),
          fmt::format("the plugin has: {}", listed(owned)));
  }
  return descriptor;
}

Result<void> call_register(const PluginDescriptor& descriptor, Registry& registry,
                           const std::string& where) {
  std::string error;
  try {
    if (descriptor.register_plugin(registry, &error)) return {};
  } catch (const std::exception& exception) {
    error = exception.what();
  }
  return bad_input(where, fmt::format("the plugin did not register: {}",
                                      error.empty() ? "no reason given" : error));
}

}  // namespace

class PluginHost::Impl {
 public:
  explicit Impl(std::vector<fs::path> directories) : directories(std::move(directories)) {}

  Result<void> load(const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex);
    if (loaded.count(name)) return {};
    const auto manifests = find_manifests(directories);
    for (const auto& manifest : manifests) {
      if (manifest.name == name) return load_locked(manifest);
    }
    std::vector<std::string> names;
    for (const auto& manifest : manifests) names.push_back(manifest.name);
    return bad_input("plugin " + name,
                     fmt::format("no {0}.so with its manifest {0}.plugin in: {1}", name,
                                 joined_directories(directories)),
                     fmt::format("plugins found: {}", listed(names)));
  }

  /// The plugin with the longest package that contains `type` (or equals it).
  Result<Owner> owner_of(const std::string& type) const {
    Owner owner;
    std::set<std::string> packages;
    for (const auto& manifest : find_manifests(directories)) {
      for (const auto& package : manifest.packages) {
        packages.insert(package);
        const bool contains = type == package || type.rfind(package + ".", 0) == 0;
        if (contains && package.size() > owner.package.size()) owner = {manifest.name, package};
      }
    }
    if (owner.package.empty())
      return bad_input(
          type, fmt::format("no plugin in {} owns this type", joined_directories(directories)),
          fmt::format("packages with a plugin: {}", listed(packages)));
    return owner;
  }

  const std::vector<fs::path> directories;
  mutable std::mutex mutex;  // guards what follows; held while a plugin registers
  std::set<std::string> loaded;
  std::map<std::string, RegisteredActor> actors;
  std::map<std::string, JobRunnerFactory> jobs;

 private:
  Result<void> load_locked(const Manifest& manifest) {
    TROUPE_ASSIGN(const PluginDescriptor* descriptor, open_library(manifest));
    StagedRegistry staged(actors, jobs, manifest.name);
    TROUPE_TRY(call_register(*descriptor, staged, manifest.library.string()));
    const auto directory = manifest.library.parent_path().string();
    for (auto& [name, factory] : staged.actors)
      actors.emplace(name, RegisteredActor{std::move(factory), directory});
    for (auto& [name, factory] : staged.jobs) jobs.emplace(name, std::move(factory));
    loaded.insert(manifest.name);
    log_debug("plugins", "loaded {} {} from {}", manifest.name,
              descriptor->version ? descriptor->version : "", manifest.library.string());
    return {};
  }
};

PluginHost::PluginHost(std::vector<fs::path> directories)
    : impl_(std::make_unique<Impl>(std::move(directories))) {}

PluginHost::~PluginHost() = default;

const std::vector<fs::path>& PluginHost::directories() const { return impl_->directories; }

Result<void> PluginHost::load(const std::string& name) { return impl_->load(name); }

Result<void> PluginHost::load_for_type(const std::string& type) {
  TROUPE_ASSIGN(const Owner owner, impl_->owner_of(without_url_prefix(type)));
  return impl_->load(owner.plugin);
}

std::vector<std::string> PluginHost::job_types() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<std::string> types;
  for (const auto& job : impl_->jobs) types.push_back(job.first);
  return types;
}

std::vector<std::pair<std::string, bool>> PluginHost::list() const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  std::vector<std::pair<std::string, bool>> plugins;
  for (const auto& manifest : find_manifests(impl_->directories))
    plugins.emplace_back(manifest.name, impl_->loaded.count(manifest.name) > 0);
  return plugins;
}

Result<caf::actor> PluginHost::create_actor(const std::string& factory, ActorContext& context,
                                            const google::protobuf::Any& config) {
  RegisteredActor actor;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto found = impl_->actors.find(factory);
    if (found == impl_->actors.end()) {
      std::vector<std::string> names;
      for (const auto& known : impl_->actors) names.push_back(known.first);
      return bad_input("actor factory " + factory, "no loaded plugin has this factory",
                       fmt::format("factories: {}", listed(names)));
    }
    actor = found->second;
  }
  context.plugin_directory = actor.directory;
  context.plugin_directories.clear();
  for (const auto& directory : impl_->directories)
    context.plugin_directories.push_back(directory.string());
  try {
    return actor.create(context, config);
  } catch (const std::exception& exception) {
    return internal_error("actor factory " + factory, exception.what());
  }
}

Result<std::unique_ptr<JobRunner>> PluginHost::create_job_runner(
    const runtime::v1::Job& job, std::shared_ptr<const ConfigSource> source) {
  const auto& url = job.plugin().type_url();
  TROUPE_TRY(load_for_type(url));
  JobRunnerFactory create;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    const auto found = impl_->jobs.find(without_url_prefix(url));
    if (found != impl_->jobs.end()) create = found->second;
  }
  if (!create)
    return bad_input("plugin", fmt::format("\"{}\" is not a kind of job", without_url_prefix(url)),
                     fmt::format("kinds of job: {}", listed(job_types())));
  return create(job, std::move(source));
}

}  // namespace troupe
