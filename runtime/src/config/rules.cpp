#include "config/rules.hpp"

#include <cctype>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "config/field_path.hpp"
#include "core/host_port.hpp"
#include "core/link_bounds.hpp"
#include "troupe/address.hpp"
#include "troupe/runtime/v1/options.pb.h"

namespace troupe {
namespace {

namespace pb = google::protobuf;
namespace v1 = runtime::v1;
using Locate = std::function<std::string(const std::string& path)>;

using EnvironmentField = pb::Map<std::string, std::string>;

/// Of names: with what is added to them they are names of files, which may have 255 bytes.
constexpr std::size_t most_name_bytes = 128;

/// Names become parts of file names, addresses and log lines.
Result<void> check_name(const std::string& name, const std::string& path, const Locate& locate) {
  if (name.empty()) return bad_input(locate(path), path + " is missing", "give it a name");
  if (name.size() > most_name_bytes)
    return bad_input(locate(path), fmt::format("{} has {} bytes", path, name.size()),
                     fmt::format("use a name of at most {}", most_name_bytes));
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.') continue;
    return bad_input(locate(path),
                     fmt::format("{} \"{}\" has a character that names cannot have", path, name),
                     "use letters, digits, '-', '_' and '.'");
  }
  if (name.front() == '.')
    return bad_input(locate(path), fmt::format("{} \"{}\" begins with a dot", path, name),
                     "begin it with a letter or digit");
  return {};
}

Result<void> check_environment(const EnvironmentField& environment, const std::string& path,
                               const Locate& locate) {
  for (const auto& [name, value] : environment) {
    const auto where = fmt::format("{}[{}]", path, name);
    if (name.empty())
      return bad_input(locate(path), path + " has a variable without a name", "give it one");
    if (name.find('=') != std::string::npos)
      return bad_input(locate(where), fmt::format("\"{}\" is no name of a variable", name),
                       "what stands behind the sign = is its value");
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos)
      return bad_input(locate(where), where + " holds a null character", "leave it out");
  }
  return {};
}

Result<void> check_job_nodes(const v1::Job& job, const Locate& locate) {
  std::map<std::string, int> first;
  for (int i = 0; i < job.nodes_size(); ++i) {
    const auto& node = job.nodes(i);
    const auto path = fmt::format("nodes[{}].", i);
    TROUPE_TRY(check_name(node.name(), path + "name", locate));
    if (node.name() == driver_node)
      return bad_input(locate(path + "name"),
                       fmt::format("\"{}\" is the name of the job's own process", driver_node),
                       "give the node another name");
    const auto [earlier, is_new] = first.emplace(node.name(), i);
    if (!is_new)
      return bad_input(locate(path + "name"),
                       fmt::format("nodes[{}] is called \"{}\" too", earlier->second, node.name()),
                       "give each node a name of its own");
    if (node.address().empty()) continue;
    if (auto parsed = parse_address(node.address()); !parsed)
      return bad_input(locate(path + "address"),
                       fmt::format("\"{}\" is {}", node.address(), parsed.error().what),
                       parsed.error().hint);
    TROUPE_TRY(check_environment(node.environment(), path + "environment", locate));
  }
  return {};
}

/// A number as it is written, or as its `default_text` says.
double effective(const pb::Message& message, const char* name) {
  const auto& field = *message.GetDescriptor()->FindFieldByName(name);
  const double written = message.GetReflection()->GetDouble(message, &field);
  if (written != 0) return written;
  return std::strtod(field.options().GetExtension(v1::default_text).c_str(), nullptr);
}

Result<void> check_heartbeat(const v1::Heartbeat& heartbeat, const Locate& locate) {
  const double interval = effective(heartbeat, "interval_seconds");
  const double timeout = effective(heartbeat, "timeout_seconds");
  if (timeout > interval) return {};
  const auto* path =
      heartbeat.timeout_seconds() != 0 ? "heartbeat.timeout_seconds" : "heartbeat.interval_seconds";
  return bad_input(
      locate(path),
      fmt::format("heartbeat.timeout_seconds is {}, not more than interval_seconds, {}", timeout,
                  interval),
      "allow at least two intervals");
}

/// A piece whose size is not written follows the budget.
Result<void> check_links(const v1::LinkLimits& links, const Locate& locate) {
  const std::uint64_t budget =
      links.chunk_budget_bytes() != 0 ? links.chunk_budget_bytes() : LinkBounds().chunk_budget;
  if (links.chunk_bytes() <= budget) return {};
  return bad_input(locate("links.chunk_bytes"),
                   fmt::format("links.chunk_bytes is {}, more than chunk_budget_bytes, {}",
                               links.chunk_bytes(), budget),
                   "a piece must fit into the budget");
}

}  // namespace

Result<void> check_rules(const v1::Job& job, const Locate& locate) {
  TROUPE_TRY(check_name(job.name(), "name", locate));
  TROUPE_TRY(check_job_nodes(job, locate));
  TROUPE_TRY(check_links(job.links(), locate));
  return check_heartbeat(job.heartbeat(), locate);
}

Result<void> check_rules(const v1::Node& node, const Locate& locate) {
  TROUPE_TRY(check_name(node.name(), "name", locate));
  return check_environment(node.environment(), "environment", locate);
}

Result<void> check_rules(const v1::StartWorker& request, const Locate& locate) {
  TROUPE_TRY(check_name(request.job(), "job", locate));
  TROUPE_TRY(check_name(request.node(), "node", locate));
  TROUPE_TRY(check_environment(request.environment(), "environment", locate));
  TROUPE_TRY(check_links(request.links(), locate));
  return check_heartbeat(request.heartbeat(), locate);
}

}  // namespace troupe
