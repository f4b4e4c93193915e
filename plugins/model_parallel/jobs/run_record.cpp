#include "jobs/run_record.hpp"

#include <string>
#include <vector>

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include "troupe/files.hpp"
#include "troupe/json.hpp"
#include "troupe/log.hpp"

namespace troupe::mp {
namespace {

using google::protobuf::util::MessageDifferencer;

Result<std::string> to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return internal_error("run.json", status.ToString());
  return json;
}

void warn_of_different_nodes(const JobSession& session) {
  const auto& nodes = session.nodes();
  for (const auto& node : nodes)
    if (!MessageDifferencer::Equals(node.fingerprint(), nodes.front().fingerprint()))
      log_warning("run",
                  "nodes {} and {} differ in CPU, threads or libraries: results are not "
                  "bit-identical to a run on one of them",
                  nodes.front().name(), node.name());
}

}  // namespace

Result<void> write_run_record(const JobSession& session, const std::filesystem::path& directory) {
  warn_of_different_nodes(session);
  TROUPE_ASSIGN(const std::string job, to_json(session.job()));
  std::vector<std::string> nodes;
  for (const auto& node : session.nodes()) {
    TROUPE_ASSIGN(nodes.emplace_back(), to_json(node));
  }
  const auto record = JsonObject().add_json("job", job).add_json("nodes", json_array(nodes));
  return write_whole_file(directory / "run.json", record.text() + "\n");
}

}  // namespace troupe::mp
