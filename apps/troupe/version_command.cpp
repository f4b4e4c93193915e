#include <cstdio>

#include "actor/version.hpp"
#include "common.hpp"
#include "troupe/plugin.hpp"

namespace troupe::cli {

void add_version_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Versions of this and what it was built with");
  command->callback([&action] {
    action = [] {
      std::printf("troupe %s\n%s\nplugin interface %u\nmessages %016llx\n", version(),
                  build_description().c_str(), plugin_abi_version,
                  static_cast<unsigned long long>(descriptor_hash()));
      return 0;
    };
  });
}

}  // namespace troupe::cli
