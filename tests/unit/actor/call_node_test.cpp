#include "actor/call_node.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "actor/version.hpp"
#include "troupe/plugin.hpp"

namespace troupe {
namespace {

runtime::v1::Response introduction_of(const std::string& name) {
  runtime::v1::Response response;
  response.mutable_hello()->set_name(name);
  response.mutable_hello()->set_version(version());
  response.mutable_hello()->set_plugin_abi(plugin_abi_version);
  response.mutable_hello()->set_descriptor_hash(descriptor_hash());
  return response;
}

struct Fixture {
  ~Fixture() { caf::anon_send_exit(endpoint, caf::exit_reason::user_shutdown); }

  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::actor endpoint =
      system.spawn([](caf::event_based_actor*) { return caf::behavior{[](int) {}}; });
  caf::strong_actor_ptr handle = caf::actor_cast<caf::strong_actor_ptr>(endpoint);
};

const Callee node_b{"node b", "127.0.0.1:7", "b"};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(call_node_answers, Fixture)

BOOST_AUTO_TEST_CASE(the_node_that_was_called_is_accepted) {
  auto called = check_answer(node_b, endpoint, introduction_of("b"), handle);
  BOOST_REQUIRE(called.ok());
  BOOST_TEST((called->endpoint == endpoint));
  BOOST_TEST(called->info.name() == "b");
}

BOOST_AUTO_TEST_CASE(another_node_at_the_address_is_an_error) {
  auto called = check_answer(node_b, endpoint, introduction_of("c"), handle);
  BOOST_REQUIRE(!called.ok());
  BOOST_TEST(called.error().where == "node b at 127.0.0.1:7");
  BOOST_TEST(called.error().what == "node c answered where node b was expected");
}

BOOST_AUTO_TEST_CASE(a_node_without_an_endpoint_is_an_error) {
  auto called = check_answer(node_b, endpoint, introduction_of("b"), nullptr);
  BOOST_REQUIRE(!called.ok());
  BOOST_TEST(called.error().what == "answered hello without an endpoint");
}

BOOST_AUTO_TEST_CASE(a_launcher_has_a_name_of_its_own_and_no_endpoint) {
  BOOST_TEST(check_answer({"", "127.0.0.1:7", ""}, endpoint, introduction_of("m"), nullptr).ok());
}

BOOST_AUTO_TEST_CASE(another_answer_is_an_error) {
  runtime::v1::Response done;
  done.mutable_done();
  BOOST_TEST(!check_answer(node_b, endpoint, done, handle).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
