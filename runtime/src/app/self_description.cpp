#include "app/self_description.hpp"

#include <unistd.h>

#include "actor/version.hpp"
#include "app/machine.hpp"
#include "troupe/plugin.hpp"

namespace troupe {

runtime::v1::NodeInfo describe_this_process(const std::string& name) {
  runtime::v1::NodeInfo info;
  info.set_name(name);
  info.set_version(version());
  info.set_plugin_abi(plugin_abi_version);
  info.set_descriptor_hash(descriptor_hash());
  info.set_pid(getpid());
  char host_name[256] = {};
  gethostname(host_name, sizeof host_name - 1);
  info.set_host_name(host_name);
  *info.mutable_fingerprint() = numeric_fingerprint(read_machine(), current_environment());
  return info;
}

}  // namespace troupe
