#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "unit/config/support.hpp"

using troupe::testing::ConfigFile;
using troupe::testing::error_text;
using troupe::testing::good_fields;
using troupe::testing::job_with;
using troupe::testing::plugin_text;

namespace {

struct Fixture {
  ConfigFile file{job_with(good_fields)};

  /// The plugin's message after these overrides.
  std::string plugin_after(const std::vector<std::string>& sets) {
    const auto loaded = file.load_job(sets);
    BOOST_REQUIRE_MESSAGE(loaded.ok(), error_text(loaded));
    return plugin_text(*loaded);
  }
  std::string error(const std::string& set) { return file.job_error({set}); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(config_override, Fixture)

BOOST_AUTO_TEST_CASE(fields_of_every_type_are_set) {
  const auto loaded = file.load_job({"name=other", "seed=18446744073709551615",
                                     "links.chunk_bytes=8192", "nodes[0].environment[A]=b"});
  BOOST_REQUIRE_MESSAGE(loaded.ok(), error_text(loaded));
  BOOST_TEST(loaded->job.name() == "other");
  BOOST_TEST(loaded->job.seed() == 18446744073709551615u);
  BOOST_TEST(loaded->job.links().chunk_bytes() == 8192u);
  BOOST_TEST(loaded->job.nodes(0).environment().at("A") == "b");
  BOOST_TEST(plugin_after({"plugin.count=8", "plugin.ratio=2.5e-1", "plugin.color=COLOR_GREEN",
                           "plugin.flag=true", "plugin.offset=-3", "plugin.part.weight=1"}) ==
             "count: 8 ratio: 0.25 part { name: \"p\" weight: 1 } alpha { } color: COLOR_GREEN "
             "flag: true offset: -3");
}

BOOST_AUTO_TEST_CASE(a_string_may_be_quoted) {
  BOOST_TEST(plugin_after({"plugin.part.name=\"x y\""}).find("name: \"x y\"") != std::string::npos);
  BOOST_TEST(plugin_after({"plugin.part.name=a=b"}).find("name: \"a=b\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_last_of_several_wins) {
  BOOST_TEST(plugin_after({"plugin.count=8", "plugin.count=9"}).find("count: 9") == 0u);
}

BOOST_AUTO_TEST_CASE(an_index_equal_to_the_size_appends) {
  const auto loaded = file.load_job({"nodes[1].name=b", "nodes[1].address=192.0.2.7:7856"});
  BOOST_REQUIRE_MESSAGE(loaded.ok(), error_text(loaded));
  BOOST_REQUIRE(loaded->job.nodes_size() == 2);
  BOOST_TEST(loaded->job.nodes(1).name() == "b");
  BOOST_TEST(loaded->job.nodes(1).address() == "192.0.2.7:7856");
  BOOST_TEST(plugin_after({"plugin.shape[0]=3", "plugin.shape[1]=4", "plugin.shape[0]=5"})
                 .find("shape: 5 shape: 4") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(naming_a_member_of_a_oneof_switches_it) {
  BOOST_TEST(plugin_after({"plugin.beta={}"}) == "count: 7 part { name: \"p\" } beta { }");
  BOOST_TEST(plugin_after({"plugin.beta={}", "plugin.alpha.level=2"}) ==
             "count: 7 part { name: \"p\" } alpha { level: 2 }");
}

BOOST_AUTO_TEST_CASE(messages_and_lists_are_given_whole) {
  BOOST_TEST(plugin_after({"plugin.part={name: \"z\" weight: 0.5}"}) ==
             "count: 7 part { name: \"z\" weight: 0.5 } alpha { }");
  BOOST_TEST(plugin_after({"plugin.shape[0]=9", "plugin.shape=[1, 2]"}) ==
             "count: 7 part { name: \"p\" } shape: 1 shape: 2 alpha { }");
  BOOST_TEST(plugin_after({"plugin.parts[0]={name: \"z\"}", "plugin.parts=[]"}) ==
             "count: 7 part { name: \"p\" } alpha { }");
  BOOST_TEST(plugin_after({"plugin={[type.googleapis.com/troupe.test.v1.TestJob] {count: 1 part "
                           "{name: \"n\"} beta {}}}"}) == "count: 1 part { name: \"n\" } beta { }");
}

BOOST_AUTO_TEST_CASE(maps_are_set_by_key) {
  BOOST_TEST(plugin_after({"plugin.attributes[stride]=2", "plugin.attributes[stride]=3",
                           "plugin.numbered[-4].name=m"}) ==
             "count: 7 part { name: \"p\" } alpha { } attributes { key: \"stride\" value: 3 } "
             "numbered { key: -4 value { name: \"m\" } }");
  BOOST_TEST(error("plugin.attributes=3") ==
             "--set plugin.attributes: attributes is a map; name a key: attributes[KEY]");
  BOOST_TEST(error("plugin.numbered[x].name=m") ==
             "--set plugin.numbered[x].name: \"x\" is not a whole number; write it in digits, "
             "without a unit");
}

BOOST_AUTO_TEST_CASE(a_wrong_path_says_what_there_is) {
  BOOST_TEST(error("plugin.cuont=1") ==
             "--set plugin.cuont: no field \"cuont\" in TestJob; did you mean \"count\"?");
  BOOST_TEST(error("plugin.part.colour=1") ==
             "--set plugin.part.colour: no field \"colour\" in Part; fields: name, weight");
  BOOST_TEST(error("nodes[2].name=x") ==
             "--set nodes[2].name: [2] is no element of nodes, which has 1; nodes[1] appends one");
  BOOST_TEST(error("nodes[-1].name=x") ==
             "--set nodes[-1].name: [-1] is no element of nodes, which has 1; "
             "nodes[1] appends one");
  BOOST_TEST(error("nodes.name=x") ==
             "--set nodes.name: nodes is a list of 1; "
             "name an element, nodes[1] appends one; or give all as nodes=[...]");
  BOOST_TEST(error("name[0]=x") == "--set name[0]: name is not a list; leave the brackets out");
  BOOST_TEST(error("name.first=x") ==
             "--set name.first: name has no fields inside; end the path there");
  BOOST_TEST(error("plugin.shape[0].x=1") ==
             "--set plugin.shape[0].x: shape[0] has no fields inside; end the path there");
}

BOOST_AUTO_TEST_CASE(a_path_that_is_none_is_refused) {
  BOOST_TEST(error("plugin.count") == "--set plugin.count: has no value; write it as path=value");
  BOOST_TEST(error("=3") == "--set =3: \"\" is not a field path; write it like nodes[1].address");
  BOOST_TEST(error("nodes[]=3") ==
             "--set nodes[]=3: \"nodes[]\" has a bracket without index; "
             "write it like nodes[1].address");
  BOOST_TEST(error("nodes[0]name=3") ==
             "--set nodes[0]name=3: \"nodes[0]name\" is not a field path; "
             "a dot comes after a closing bracket");
}

BOOST_AUTO_TEST_CASE(a_wrong_value_says_what_is_expected) {
  BOOST_TEST(
      error("plugin.count=many") ==
      "--set plugin.count: \"many\" is not a whole number; write it in digits, without a unit");
  BOOST_TEST(
      error("plugin.count=1.5") ==
      "--set plugin.count: \"1.5\" is not a whole number; write it in digits, without a unit");
  BOOST_TEST(error("plugin.count=-1") ==
             "--set plugin.count: -1 is negative; give a whole number from 0 on");
  BOOST_TEST(error("plugin.count=5000000000") ==
             "--set plugin.count: 5000000000 is too large or too small for a whole number; "
             "it lies between 0 and 4294967295");
  BOOST_TEST(error("plugin.ratio=half") ==
             "--set plugin.ratio: \"half\" is not a number; write it in digits, without a unit");
  BOOST_TEST(error("plugin.ratio=") ==
             "--set plugin.ratio: \"\" is not a number; write it in digits, without a unit");
  BOOST_TEST(error("plugin.flag=yes") ==
             "--set plugin.flag: \"yes\" is not a truth value; give true or false");
  BOOST_TEST(error("plugin.color=COLOR_GREN") ==
             "--set plugin.color: \"COLOR_GREN\" is not a value of color; "
             "did you mean \"COLOR_GREEN\"?");
  BOOST_TEST(error("plugin.part=p") ==
             "--set plugin.part: part is a message; set a field of it (part.name=...), "
             "or give {...}");
  BOOST_TEST(error("plugin.part={nam: \"x\"}") ==
             "--set plugin.part: no field \"nam\" in Part; did you mean \"name\"?");
}

BOOST_AUTO_TEST_CASE(a_value_out_of_range_names_the_override) {
  BOOST_TEST(error("plugin.count=101") ==
             "--set plugin.count: plugin.count is 101; it must be at least 1 and at most 100");
  BOOST_TEST(error("plugin.part={name: \"x\" weight: 3}") ==
             "--set plugin.part: plugin.part.weight is 3; it must be at least 0 and at most 1");
  BOOST_TEST(error("nodes[1].address=x") ==
             "--set nodes[1].address: nodes[1].name is missing; write `name: \"...\"`");
}

BOOST_AUTO_TEST_CASE(stepping_into_an_absent_plugin_message_is_refused) {
  const ConfigFile bare("name: \"job\" nodes { name: \"a\" }");
  BOOST_TEST(bare.job_error({"plugin.count=1"}) ==
             "--set plugin.count: there is no plugin message to step into; "
             "write one in the file");
}

BOOST_AUTO_TEST_SUITE_END()
