#include "app/launcher_watch.hpp"

#include <caf/actor_addr.hpp>

namespace troupe {

void LauncherWatch::add(const caf::actor& launcher, const std::string& node) {
  const auto entry =
      watched_.try_emplace(launcher.address(), Watched{launcher, {}, {interval_, timeout_}}).first;
  entry->second.nodes.push_back(node);
}

void LauncherWatch::on_answer(const caf::actor& launcher) {
  const auto entry = watched_.find(launcher.address());
  if (entry != watched_.end()) entry->second.life.on_sign_of_life();
}

std::vector<caf::actor> LauncherWatch::on_tick(Duration elapsed) {
  std::vector<caf::actor> silent;
  for (auto& [address, watched] : watched_)
    if (!watched.life.on_tick(elapsed)) silent.push_back(watched.launcher);
  return silent;
}

std::vector<std::string> LauncherWatch::remove(const caf::actor_addr& launcher) {
  const auto entry = watched_.find(launcher);
  if (entry == watched_.end()) return {};
  std::vector<std::string> nodes = std::move(entry->second.nodes);
  watched_.erase(entry);
  return nodes;
}

std::vector<caf::actor> LauncherWatch::launchers() const {
  std::vector<caf::actor> all;
  for (const auto& entry : watched_) all.push_back(entry.second.launcher);
  return all;
}

}  // namespace troupe
