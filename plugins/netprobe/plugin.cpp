#include "troupe/plugin.hpp"

#include <string>

#include "netprobe/probe_actor.hpp"
#include "netprobe/probe_runner.hpp"
#include "troupe/netprobe/v1/netprobe.pb.h"

namespace troupe::netprobe {

namespace {

Result<void> register_all(Registry& registry) {
  TROUPE_TRY(registry.add_actor(probe_factory, spawn_probe));
  return registry.add_job(*v1::ProbeJob::descriptor(), make_probe_runner);
}

bool register_plugin(Registry& registry, std::string* error) {
  const auto registered = register_all(registry);
  if (!registered) *error = registered.error().to_string();
  return registered.ok();
}

constexpr const char* packages[] = {"troupe.netprobe.v1", nullptr};

constexpr PluginDescriptor descriptor = {plugin_abi_version, "troupe_netprobe", "0.1.0", packages,
                                         register_plugin};

}  // namespace

}  // namespace troupe::netprobe

TROUPE_PLUGIN_ENTRY { return &troupe::netprobe::descriptor; }
