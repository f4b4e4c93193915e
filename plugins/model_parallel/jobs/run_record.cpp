#include "jobs/run_record.hpp"

#include <fstream>
#include <string>

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include "jobs/json.hpp"
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

Result<void> write_run_record(JobSession& session) {
  warn_of_different_nodes(session);
  TROUPE_ASSIGN(const std::string job, to_json(session.job()));
  std::string nodes;
  for (const auto& node : session.nodes()) {
    TROUPE_ASSIGN(const std::string json, to_json(node));
    nodes += (nodes.empty() ? "" : ", ") + json;
  }
  TROUPE_ASSIGN(const auto directory, session.out_directory());
  const auto path = directory / "run.json";
  std::ofstream file(path);
  file << JsonObject().add_json("job", job).add_json("nodes", "[" + nodes + "]").text() << '\n';
  if (!file.flush()) return bad_input(path.string(), "cannot write");
  return {};
}

}  // namespace troupe::mp
