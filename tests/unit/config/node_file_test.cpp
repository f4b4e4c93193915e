#include <string>

#include <boost/test/unit_test.hpp>

#include "unit/config/support.hpp"

using troupe::testing::ConfigFile;
using troupe::testing::error_text;

BOOST_AUTO_TEST_SUITE(node_file)

BOOST_AUTO_TEST_CASE(a_good_file_loads) {
  const ConfigFile file(
      "# proto-message: troupe.runtime.v1.Node\nname: \"m1\"\nport: 0\n"
      "environment { key: \"A\" value: \"1\" }\n");
  const auto node = file.load_node({"environment[A]=2", "environment[B]=x=y"});
  BOOST_REQUIRE_MESSAGE(node.ok(), error_text(node));
  BOOST_TEST(node->name() == "m1");
  BOOST_TEST(node->environment().at("A") == "2");
  BOOST_TEST(node->environment().at("B") == "x=y");
}

BOOST_AUTO_TEST_CASE(errors_have_positions) {
  BOOST_TEST(ConfigFile("").node_error() == "FILE: name is missing; write `name: \"...\"`");
  BOOST_TEST(ConfigFile("name: \"m\"\nport: 70000").node_error() ==
             "FILE:2:1: port is 70000; it must be at most 65535");
  BOOST_TEST(ConfigFile("name: \"m\"\nprot: 7").node_error() ==
             "FILE:2:1: no field \"prot\" in Node; did you mean \"port\"?");
  BOOST_TEST(ConfigFile("name: \"m\"\ndrain_seconds: -1").node_error() ==
             "FILE:2:1: drain_seconds is -1; it must be greater than 0 and at most 3600");
  BOOST_TEST(ConfigFile("name: \"m\"\n").node_error({"port=99999"}) ==
             "--set port: port is 99999; it must be at most 65535");
}

BOOST_AUTO_TEST_CASE(names_of_variables_are_checked) {
  const ConfigFile file("name: \"m\"\n");
  BOOST_TEST(file.node_error({"environment[B=C]=x"}) ==
             "--set environment[B=C]: \"B=C\" is no name of a variable; "
             "what stands behind the sign = is its value");
  BOOST_TEST(ConfigFile("name: \"m\" environment { value: \"x\" }").node_error() ==
             "FILE:1:11: environment has a variable without a name; give it one");
}

BOOST_AUTO_TEST_SUITE_END()
