// The measuring job over real processes, as its example file has it.

#include <nlohmann/json.hpp>
#include <set>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"

namespace troupe::test {
namespace {

using Json = nlohmann::json;

const std::string job_file = std::string(TROUPE_SOURCE_DIR) + "/apps/configs/netprobe.textproto";

const std::vector<std::string> quickly = {
    "--set", "plugin.sizes[3]=262144", "--set", "plugin.sizes[2]=131072",
    "--set", "plugin.rounds=2",        "--set", "plugin.round_trips=10"};

std::vector<std::string> with(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), quickly.begin(), quickly.end());
  return arguments;
}

void expect_links(const Json& report,
                  const std::vector<std::pair<std::string, std::string>>& pairs) {
  const Json& links = report.at("links");
  BOOST_REQUIRE_EQUAL(links.size(), pairs.size());
  std::set<std::pair<std::string, std::string>> found;
  for (const Json& link : links) {
    found.emplace(link.at("from"), link.at("to"));
    BOOST_TEST(link.at("round_trip_seconds") > 0);
    BOOST_TEST(link.at("transfers").size() == 4u);
    for (const Json& transfer : link.at("transfers"))
      BOOST_TEST(transfer.at("bytes_per_second") > 0);
  }
  for (const auto& pair : pairs)
    BOOST_TEST((found.count(pair) == 1), pair.first << " to " << pair.second);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(netprobe)

BOOST_AUTO_TEST_CASE(local_workers_as_a_table_and_a_file) {
  Cluster cluster;
  Process run = cluster.run(job_file, quickly);
  const auto header = run.read_line_with("from");
  BOOST_REQUIRE_MESSAGE(header, run.error_output());
  BOOST_TEST(header->find("round trip") != std::string::npos, *header);
  BOOST_TEST(header->find("256 KiB") != std::string::npos, *header);
  for (const char* row : {"a     b", "b     a"}) {
    const auto line = run.read_line();
    BOOST_REQUIRE(line);
    BOOST_TEST(line->rfind(row, 0) == 0u, *line);
    BOOST_TEST(line->find("B/s") != std::string::npos, *line);
  }
  BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
  expect_links(Json::parse(read_text(cluster.out() + "/netprobe.json")), {{"a", "b"}, {"b", "a"}});
}

BOOST_AUTO_TEST_CASE(launchers_started_by_hand_as_json) {
  Cluster cluster;
  std::string first, second;
  Process one = cluster.start_launcher("one", first);
  Process two = cluster.start_launcher("two", second);
  const Json result = result_of(
      cluster.run(job_file, with({"--json", "--set", "nodes[0].address=" + first, "--set",
                                  "nodes[1].address=" + second, "--set", "nodes[2].name=c"})));
  expect_links(result, {{"a", "b"}, {"a", "c"}, {"b", "a"}, {"b", "c"}, {"c", "a"}, {"c", "b"}});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
