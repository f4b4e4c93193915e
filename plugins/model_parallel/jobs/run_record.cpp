#include "jobs/run_record.hpp"

#include <string>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "troupe/files.hpp"
#include "troupe/json.hpp"

namespace troupe::mp {
namespace {

Result<std::string> to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return internal_error("run.json", status.ToString());
  return json;
}

Result<std::string> stages_json(const std::vector<StageNumerics>& stages) {
  std::string text;
  for (const auto& stage : stages) {
    TROUPE_ASSIGN(const std::string fingerprint, to_json(stage.fingerprint));
    text += (text.empty() ? "" : ", ") + JsonObject()
                                             .add("stage", std::uint64_t{stage.stage})
                                             .add("node", stage.node)
                                             .add_json("fingerprint", fingerprint)
                                             .text();
  }
  return "[" + text + "]";
}

}  // namespace

Result<void> write_run_record(const JobSession& session, const std::filesystem::path& directory,
                              const std::vector<StageNumerics>& stages) {
  TROUPE_ASSIGN(const std::string job, to_json(session.job()));
  std::vector<std::string> nodes;
  for (const auto& node : session.nodes()) {
    TROUPE_ASSIGN(nodes.emplace_back(), to_json(node));
  }
  TROUPE_ASSIGN(const std::string stage_list, stages_json(stages));
  const auto record = JsonObject()
                          .add_json("job", job)
                          .add_json("nodes", json_array(nodes))
                          .add_json("stages", stage_list);
  return write_whole_file(directory / "run.json", record.text() + "\n");
}

}  // namespace troupe::mp
