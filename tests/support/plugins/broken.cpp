// One plugin that fails in the way its definitions choose.
#include <stdexcept>

#include "troupe/plugin.hpp"

#ifndef TEST_PLUGIN_ABI_OFFSET
#define TEST_PLUGIN_ABI_OFFSET 0
#endif

namespace {

troupe::Result<caf::actor> no_actor(troupe::ActorContext&, const google::protobuf::Any&) {
  return caf::actor{};
}

bool register_plugin(troupe::Registry& registry, std::string* error) {
  if (auto added = registry.add_actor("test.broken", no_actor); !added) {
    *error = added.error().to_string();
    return false;
  }
#if defined(TEST_PLUGIN_REFUSES)
  *error = "no licence";
  return false;
#elif defined(TEST_PLUGIN_THROWS)
  throw std::runtime_error("out of luck");
#elif defined(TEST_PLUGIN_REGISTERS_TAKEN_NAME)
  if (auto added = registry.add_actor("test.echo", no_actor); !added) {
    *error = added.error().to_string();
    return false;
  }
  return true;
#else
  return true;
#endif
}

#ifdef TEST_PLUGIN_WRONG_NAME
constexpr const char* name = "somebody_else";
#else
constexpr const char* name = TEST_PLUGIN_NAME;
#endif

constexpr const char* packages[] = {"troupe.test.wrong_abi.v1", "troupe.test.wrong_name.v1",
                                    "troupe.test.refusing.v1",  "troupe.test.throwing.v1",
                                    "troupe.test.duplicate.v1", nullptr};

const troupe::PluginDescriptor descriptor = {troupe::plugin_abi_version + TEST_PLUGIN_ABI_OFFSET,
                                             name, "1.0", packages, register_plugin};

}  // namespace

TROUPE_PLUGIN_ENTRY { return &descriptor; }
