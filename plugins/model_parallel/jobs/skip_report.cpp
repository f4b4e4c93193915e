#include "jobs/skip_report.hpp"

#include <map>
#include <string>

#include <fmt/format.h>

#include "troupe/json.hpp"

namespace troupe::mp {

void SkipReport::watch(const FeedConfig& feed) {
  if (auto skipped = feed.source->skipped()) watched_.push_back(std::move(skipped));
}

std::uint64_t SkipReport::write(JobSession& session) const {
  // Training and evaluation may share a directory.
  std::map<std::string, std::string> files;
  for (const auto& skipped : watched_)
    for (auto& [path, reason] : skipped->entries()) files.emplace(path, reason);
  if (files.empty()) return 0;
  for (const auto& [path, reason] : files)
    session.record_event(
        JsonObject().add("event", "skipped_file").add("file", path).add("reason", reason).text());
  session.console().line(
      fmt::format("skipped {} unreadable files, which events.jsonl names", files.size()));
  return files.size();
}

}  // namespace troupe::mp
