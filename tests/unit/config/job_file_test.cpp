#include <string>

#include <sys/stat.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include "unit/config/support.hpp"

using troupe::testing::ConfigFile;
using troupe::testing::error_text;
using troupe::testing::good_fields;
using troupe::testing::job_with;

namespace {

/// The error of a job whose plugin message has these fields (from line 4 on).
std::string plugin_error(const std::string& fields) {
  return ConfigFile(job_with(fields)).job_error();
}

/// The error of a job whose own fields are these; the plugin's follow and are good.
std::string job_error(const std::string& fields) {
  return ConfigFile(fields + "\nplugin { [type.googleapis.com/troupe.test.v1.TestJob] {\n" +
                    good_fields + "} }\n")
      .job_error();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_file)

BOOST_AUTO_TEST_CASE(a_good_file_loads_with_its_plugin) {
  const ConfigFile file("# proto-message: troupe.runtime.v1.Job\n" + job_with(good_fields));
  const auto loaded = file.load_job();
  BOOST_REQUIRE_MESSAGE(loaded.ok(), error_text(loaded));
  BOOST_TEST(loaded->job.name() == "job");
  BOOST_TEST(loaded->job.nodes(0).name() == "a");
  BOOST_TEST(troupe::testing::plugin_text(*loaded) == "count: 7 part { name: \"p\" } alpha { }");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_says_so) {
  const ConfigFile file("");
  troupe::PluginHost plugins({});
  const auto directory = file.path().parent_path();
  const auto missing = troupe::load_job(directory / "none", {}, plugins);
  BOOST_REQUIRE(!missing.ok());
  BOOST_TEST(missing.error().to_string() ==
             (directory / "none").string() + ": no such file; check the path");
  const auto folder = troupe::load_job(directory, {}, plugins);
  BOOST_REQUIRE(!folder.ok());
  BOOST_TEST(folder.error().to_string() ==
             directory.string() + ": is a directory; give the file inside it");
  if (geteuid() == 0) return;  // root reads everything
  BOOST_REQUIRE(chmod(file.path().c_str(), 0) == 0);
  BOOST_TEST(file.job_error() == "FILE: cannot be read: Permission denied; check its permissions");
}

BOOST_AUTO_TEST_CASE(a_misspelt_field_is_found_where_it_begins) {
  BOOST_TEST(job_error("nmae: \"job\"") ==
             "FILE:1:1: no field \"nmae\" in Job; did you mean \"name\"?");
  BOOST_TEST(job_error("name: \"job\"\nnodes {\n\tname: \"a\"\n\taddres: \"x:1\"\n}") ==
             "FILE:4:2: no field \"addres\" in JobNode; did you mean \"address\"?");
  BOOST_TEST(job_error("name: \"job\" wholly_wrong\n\n{}") ==
             "FILE:1:13: no field \"wholly_wrong\" in Job; fields: name, seed, nodes, plugin, "
             "links, heartbeat, connect_timeout_seconds");
}

BOOST_AUTO_TEST_CASE(a_misspelt_field_inside_the_plugin_is_found_where_it_begins) {
  BOOST_TEST(plugin_error("count: 7\npart { nam: \"p\" }\nalpha {}\n") ==
             "FILE:5:8: no field \"nam\" in Part; did you mean \"name\"?");
}

BOOST_AUTO_TEST_CASE(broken_syntax_has_a_position) {
  BOOST_TEST(plugin_error("count: seven\n") == "FILE:4:8: Expected integer, got: seven");
  BOOST_TEST(plugin_error("count: 7\ncount: 8\n").find("FILE:5:") == 0u);
  BOOST_TEST(plugin_error("count: 5000000000\n").find("FILE:4:8: Integer out of range") == 0u);
}

BOOST_AUTO_TEST_CASE(an_unknown_enum_value_lists_the_values) {
  BOOST_TEST(plugin_error("color: COLOR_REED\n") ==
             "FILE:4:8: \"COLOR_REED\" is not a value of color; did you mean \"COLOR_RED\"?");
  BOOST_TEST(plugin_error("color: BLUE\n") ==
             "FILE:4:8: \"BLUE\" is not a value of color; values: COLOR_RED, COLOR_GREEN");
  BOOST_TEST(plugin_error(std::string(good_fields) + "color: 17\n") ==
             "FILE:7:1: plugin.color is 17, which no value has; values: COLOR_RED, COLOR_GREEN");
}

BOOST_AUTO_TEST_CASE(a_wrong_type_url_names_the_known_ones) {
  const std::string begin = "name: \"job\"\nnodes { name: \"a\" }\nplugin {\n  [";
  const auto unknown_package =
      ConfigFile(begin + "type.googleapis.com/troupe.tset.v1.TestJob] {} }").job_error();
  BOOST_TEST(unknown_package.find("FILE:4:4: troupe.tset.v1.TestJob: no plugin in ") == 0u);
  BOOST_TEST(unknown_package.find("packages with a plugin: troupe.test.v1") != std::string::npos);
  BOOST_TEST(ConfigFile(begin + "type.googleapis.com/troupe.test.v1.TestJbo] {} }").job_error() ==
             "FILE:4:4: the plugin has no message \"troupe.test.v1.TestJbo\"; "
             "did you mean \"troupe.test.v1.TestJob\"?");
  BOOST_TEST(ConfigFile(begin + "example.com/troupe.test.v1.TestJob] {} }").job_error() ==
             "FILE:4:4: \"example.com/troupe.test.v1.TestJob\" is not a type URL; "
             "begin it with type.googleapis.com/");
  BOOST_TEST(
      ConfigFile(begin + "type.googleapis.com/troupe.test.v1.Part] {name: \"p\"} }").job_error() ==
      "FILE:3:1: \"troupe.test.v1.Part\" is not a kind of job; "
      "kinds of job: troupe.test.v1.TestJob");
}

BOOST_AUTO_TEST_CASE(a_missing_field_is_found_at_what_should_hold_it) {
  BOOST_TEST(job_error("nodes { name: \"a\" }") == "FILE: name is missing; write `name: \"...\"`");
  BOOST_TEST(job_error("name: \"job\"") == "FILE: nodes is missing; give at least 1");
  BOOST_TEST(job_error("name: \"job\"\n  nodes {}") ==
             "FILE:2:3: nodes[0].name is missing; write `name: \"...\"`");
  BOOST_TEST(ConfigFile("name: \"job\" nodes { name: \"a\" }").job_error() ==
             "FILE: plugin is missing; write `plugin { ... }`");
  BOOST_TEST(plugin_error("count: 7\nalpha {}\n") ==
             "FILE:3:1: plugin.part is missing; write `part { ... }`");
  BOOST_TEST(plugin_error("count: 7\npart { weight: 0.5 }\nalpha {}\n") ==
             "FILE:5:1: plugin.part.name is missing; write `name: \"...\"`");
  BOOST_TEST(plugin_error("count: 7\npart { name: \"p\" }\n") ==
             "FILE:3:1: plugin.kind is missing; give one of: alpha, beta");
}

BOOST_AUTO_TEST_CASE(a_number_outside_its_range_has_a_position) {
  BOOST_TEST(job_error("name: \"job\"\nnodes { name: \"a\" }\nlinks {\n  chunk_bytes: 100 }") ==
             "FILE:4:3: links.chunk_bytes is 100; "
             "it must be at least 4096 and at most 16777216");
  BOOST_TEST(plugin_error("count: 101\npart { name: \"p\" }\nalpha {}\n") ==
             "FILE:4:1: plugin.count is 101; it must be at least 1 and at most 100");
  BOOST_TEST(plugin_error("count: 7\npart { name: \"p\" weight: 1.5 }\nalpha {}\n") ==
             "FILE:5:18: plugin.part.weight is 1.5; it must be at least 0 and at most 1");
  BOOST_TEST(plugin_error(std::string(good_fields) + "ratio: 0") ==
             "FILE:7:1: plugin.ratio is 0; it must be greater than 0 and less than 1");
  BOOST_TEST(plugin_error(std::string(good_fields) + "parts { name: \"a\" }\n" +
                          "parts { name: \"b\"\n weight: -1 }\n") ==
             "FILE:9:2: plugin.parts[1].weight is -1; it must be at least 0 and at most 1");
}

BOOST_AUTO_TEST_CASE(elements_of_lists_and_maps_are_checked) {
  BOOST_TEST(plugin_error(std::string(good_fields) + "shape: [3, 0, 2]") ==
             "FILE:7:1: plugin.shape[1] is 0; it must be at least 1");
  BOOST_TEST(plugin_error(std::string(good_fields) + "shape: 3\n  shape: 0\n") ==
             "FILE:8:3: plugin.shape[1] is 0; it must be at least 1");
  BOOST_TEST(plugin_error(std::string(good_fields) + "numbered { key: 4 value { weight: 1 } }") ==
             "FILE:7:1: plugin.numbered[4].name is missing; write `name: \"...\"`");
}

BOOST_AUTO_TEST_CASE(zero_means_the_default_where_there_is_one) {
  BOOST_TEST(plugin_error("part { name: \"p\" }\nalpha {}\n") ==
             "FILE:3:1: plugin.count is missing or 0; it must be at least 1 and at most 100");
  BOOST_TEST(plugin_error(std::string(good_fields) + "defaulted: 0\n") == "");
  BOOST_TEST(plugin_error(std::string(good_fields) + "defaulted: 9\n") ==
             "FILE:7:1: plugin.defaulted is 9; it must be at least 10");
}

BOOST_AUTO_TEST_CASE(numbers_are_finite) {
  BOOST_TEST(plugin_error("count: 7\npart { name: \"p\" }\nalpha { level: nan }\n") ==
             "FILE:6:9: plugin.alpha.level is nan; give a finite number");
  BOOST_TEST(plugin_error("count: 7\npart { name: \"p\" }\nalpha { level: -inf }\n") ==
             "FILE:6:9: plugin.alpha.level is -inf; give a finite number");
}

BOOST_AUTO_TEST_CASE(node_names_are_unique_and_never_the_drivers) {
  BOOST_TEST(job_error("name: \"job\"\nnodes { name: \"a\" }\nnodes { name: \"a\" }") ==
             "FILE:3:9: nodes[0] is called \"a\" too; give each node a name of its own");
  BOOST_TEST(job_error("name: \"job\"\nnodes { name: \"driver\" }") ==
             "FILE:2:9: \"driver\" is the name of the job's own process; "
             "give the node another name");
  BOOST_TEST(job_error("name: \"job\"\nnodes { name: \"a/b\" }") ==
             "FILE:2:9: nodes[0].name \"a/b\" has a character that names cannot have; "
             "use letters, digits, '-', '_' and '.'");
  BOOST_TEST(job_error("name: \"..\"\nnodes { name: \"a\" }") ==
             "FILE:1:1: name \"..\" begins with a dot; begin it with a letter or digit");
}

BOOST_AUTO_TEST_CASE(addresses_are_host_and_port) {
  const auto error_of = [](const std::string& address) {
    return job_error("name: \"job\"\nnodes { name: \"a\" address: \"" + address + "\" }");
  };
  for (const auto* good : {"192.0.2.7:7856", "host.example:1", "[2001:db8::7]:65535"})
    BOOST_TEST(error_of(good) == "");
  for (const auto* bad : {"192.0.2.7", ":7856", "a:0", "a:65536", "a:", "a:b", "2001:db8::7:7856"})
    BOOST_TEST(error_of(bad) == std::string("FILE:2:19: \"") + bad +
                                    "\" is not HOST:PORT; write it like 192.0.2.7:7856 or "
                                    "[2001:db8::7]:7856");
}

BOOST_AUTO_TEST_CASE(limits_fit_each_other) {
  const std::string begin = "name: \"job\"\nnodes { name: \"a\" }\n";
  BOOST_TEST(job_error(begin + "heartbeat { interval_seconds: 2 timeout_seconds: 2 }") ==
             "FILE:3:33: heartbeat.timeout_seconds is 2, not more than interval_seconds, 2; "
             "allow at least two intervals");
  BOOST_TEST(job_error(begin + "heartbeat { interval_seconds: 5 }") ==
             "FILE:3:13: heartbeat.timeout_seconds is 3, not more than interval_seconds, 5; "
             "allow at least two intervals");
  BOOST_TEST(job_error(begin + "heartbeat { interval_seconds: 0.1 }") == "");
  BOOST_TEST(job_error(begin + "links { chunk_budget_bytes: 65536 chunk_bytes: 65537 }") ==
             "FILE:3:35: links.chunk_bytes is 65537, more than chunk_budget_bytes, 65536; "
             "a piece must fit into the budget");
  // The budget that is not written counts as well; a size that is not written follows it.
  BOOST_TEST(job_error(begin + "links { chunk_bytes: 16777216 }") ==
             "FILE:3:9: links.chunk_bytes is 16777216, more than chunk_budget_bytes, 8388608; "
             "a piece must fit into the budget");
  BOOST_TEST(job_error(begin + "links { chunk_budget_bytes: 65536 }") == "");
}

BOOST_AUTO_TEST_CASE(the_source_locates_fields_after_loading) {
  const ConfigFile file(
      job_with(std::string(good_fields) + "parts { name: \"a\" }\nparts {\n  name: \"b\"\n}\n"));
  const auto loaded = file.load_job({"plugin.parts[0].weight=0.5", "plugin.part.name=q"});
  BOOST_REQUIRE_MESSAGE(loaded.ok(), error_text(loaded));
  const auto locate = [&](const std::string& path) {
    return file.shorten(loaded->source->locate_plugin_field(path));
  };
  BOOST_TEST(locate("count") == "FILE:4:1");
  BOOST_TEST(locate("parts[1].name") == "FILE:9:3");
  BOOST_TEST(locate("parts[1].weight") == "FILE:8:1");
  BOOST_TEST(locate("parts[0].weight") == "--set plugin.parts[0].weight");
  BOOST_TEST(locate("part.name") == "--set plugin.part.name");
  BOOST_TEST(locate("part.weight") == "FILE:5:1");
  BOOST_TEST(locate("shape[2]") == "FILE:3:1");
  BOOST_TEST(locate("no_such_field") == "FILE:3:1");
  BOOST_TEST(locate("") == "FILE:3:1");
}

BOOST_AUTO_TEST_SUITE_END()
