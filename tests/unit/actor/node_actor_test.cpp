#include "actor/node_actor.hpp"

#include <atomic>
#include <future>
#include <limits>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "actor/control_codec.hpp"
#include "actor/published_actor.hpp"
#include "transport/endpoint.hpp"
#include "transport/wire.hpp"
#include "troupe/address.hpp"

namespace troupe {
namespace {

namespace v1 = runtime::v1;
using std::chrono::milliseconds;

/// Nothing leaves this process.
class NoTransport : public Transport {
 public:
  void send(const std::string&, const caf::actor&, Frame) override {}
};

/// What a hello or another request was answered.
struct Answer {
  Result<v1::Response> response = internal_error("", "no answer");
  caf::strong_actor_ptr endpoint;
};

/// The node actor of node "a", of a job "secret" with nodes "a" and "b".
struct Fixture {
  Fixture() {
    EndpointConfig endpoint_config;
    endpoint_config.node = "a";
    endpoint_config.transport = std::make_shared<NoTransport>();
    endpoint_config.run_key = key;
    // Nobody beats here.
    endpoint_config.heartbeat.set_timeout_seconds(3600);
    endpoint = spawn_endpoint(system, std::move(endpoint_config));
    NodeActorConfig node_config;
    node_config.info.set_name("a");
    node_config.run_key = key;
    node_config.nodes = {"a", "b"};
    node_config.endpoint = endpoint;
    node_config.plugins = &plugins;
    node_config.on_driver = [this] { ++drivers; };
    node_config.on_drain = [this](milliseconds deadline) { drained.set_value(deadline); };
    node_config.on_driver_lost = [](const std::string&) {};
    node = spawn_node_actor(system, std::move(node_config));
  }

  ~Fixture() {
    end_published(node);
    caf::anon_send_exit(endpoint, caf::exit_reason::user_shutdown);
    for (const auto& actor : peers) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  /// An actor that stands for the endpoint of another process.
  caf::actor peer() {
    peers.push_back(
        system.spawn([](caf::event_based_actor*) { return caf::behavior{[](const Frame&) {}}; }));
    return peers.back();
  }

  Answer hello(caf::scoped_actor& self, const v1::Request& request, const caf::actor& caller) {
    Answer answer;
    self->request(node, caf::infinite, encode(request),
                  caf::actor_cast<caf::strong_actor_ptr>(caller))
        .receive(
            [&](const ControlBytes& bytes, const caf::strong_actor_ptr& handle) {
              answer = {decode_response(bytes), handle};
            },
            [](const caf::error&) {});
    return answer;
  }

  Result<v1::Response> order(caf::scoped_actor& self, v1::Request request, const RunKey& with) {
    Result<v1::Response> response = internal_error("", "no answer");
    request.set_run_key(with.bytes());
    self->request(node, caf::infinite, encode(request))
        .receive([&](const ControlBytes& bytes) { response = decode_response(bytes); },
                 [](const caf::error&) {});
    return response;
  }

  const RunKey key = *RunKey::from_bytes("0123456789abcdef");
  const RunKey other = *RunKey::from_bytes("another run's id");
  caf::actor_system_config config;
  caf::actor_system system{config};
  PluginHost plugins{{}};
  caf::actor endpoint;
  caf::actor node;
  std::vector<caf::actor> peers;
  std::atomic<int> drivers{0};
  std::promise<milliseconds> drained;
};

v1::Request drain_within(double seconds) {
  v1::Request request;
  request.mutable_drain()->set_deadline_seconds(seconds);
  return request;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(node_actor, Fixture)

BOOST_AUTO_TEST_CASE(a_tool_learns_who_this_is_and_no_more) {
  caf::scoped_actor tool(system);
  const Answer answer = hello(tool, make_tool_hello(), nullptr);
  BOOST_REQUIRE(answer.response.ok());
  BOOST_TEST(answer.response->hello().name() == "a");
  BOOST_TEST((answer.endpoint == nullptr));
  v1::Request status;
  status.mutable_get_status();
  const auto answered = order(tool, status, RunKey());
  BOOST_REQUIRE(answered.ok());
  BOOST_TEST(answered->status().name() == "a");
}

BOOST_AUTO_TEST_CASE(a_node_of_the_same_run_gets_the_endpoint) {
  caf::scoped_actor caller(system);
  const Answer answer = hello(caller, make_hello("b", key), peer());
  BOOST_TEST(answer.response.ok());
  BOOST_TEST((caf::actor_cast<caf::actor>(answer.endpoint) == endpoint));
  BOOST_TEST(drivers == 0);
}

BOOST_AUTO_TEST_CASE(whoever_has_not_the_run_key_learns_nothing_of_the_job) {
  caf::scoped_actor caller(system);
  for (const RunKey& wrong : {other, RunKey()}) {
    for (const char* name : {"b", driver_node}) {
      const Answer answer = hello(caller, make_hello(name, wrong), peer());
      BOOST_REQUIRE(!answer.response.ok());
      BOOST_TEST(answer.response.error().what == "works for another run");
      BOOST_TEST((answer.endpoint == nullptr));
    }
  }
  BOOST_TEST(drivers == 0);
}

BOOST_AUTO_TEST_CASE(a_name_that_the_job_does_not_have_is_refused) {
  caf::scoped_actor caller(system);
  const Answer answer = hello(caller, make_hello("c", key), peer());
  BOOST_REQUIRE(!answer.response.ok());
  BOOST_TEST(answer.response.error().what == "its job has no node c");
}

BOOST_AUTO_TEST_CASE(a_name_with_a_live_endpoint_is_refused_to_another_one) {
  caf::scoped_actor caller(system);
  const caf::actor first = peer();
  BOOST_TEST(hello(caller, make_hello("b", key), first).response.ok());
  BOOST_TEST(hello(caller, make_hello("b", key), first).response.ok());
  const Answer second = hello(caller, make_hello("b", key), peer());
  BOOST_REQUIRE(!second.response.ok());
  BOOST_TEST(second.response.error().what == "has a live connection to node b");
  BOOST_TEST((second.endpoint == nullptr));
}

BOOST_AUTO_TEST_CASE(there_is_one_driver) {
  caf::scoped_actor driver(system);
  caf::scoped_actor impostor(system);
  const caf::actor driver_endpoint = peer();
  BOOST_TEST(hello(driver, make_hello(driver_node, key), driver_endpoint).response.ok());
  BOOST_TEST(!hello(impostor, make_hello(driver_node, key), driver_endpoint).response.ok());
  BOOST_TEST(!hello(impostor, make_hello(driver_node, key), peer()).response.ok());
  BOOST_TEST(drivers == 1);
}

BOOST_AUTO_TEST_CASE(orders_are_taken_from_the_driver_with_the_key_only) {
  caf::scoped_actor driver(system);
  caf::scoped_actor other_node(system);
  BOOST_TEST(!order(driver, drain_within(1), key).ok());
  BOOST_TEST(hello(driver, make_hello(driver_node, key), peer()).response.ok());
  BOOST_TEST(hello(other_node, make_hello("b", key), peer()).response.ok());
  v1::Request spawn;
  spawn.mutable_spawn()->set_name("x");
  v1::Request join;
  join.mutable_join();
  for (const v1::Request& request : {spawn, join, drain_within(1)}) {
    const auto refused = order(other_node, request, key);
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST(refused.error().what == "takes orders from the driver of its run only");
    BOOST_TEST(!order(driver, request, other).ok());
  }
  BOOST_TEST(order(driver, drain_within(1.5), key).ok());
  BOOST_TEST((drained.get_future().get() == milliseconds(1500)));
}

BOOST_AUTO_TEST_CASE(a_deadline_that_is_no_time_is_harmless) {
  caf::scoped_actor driver(system);
  BOOST_TEST(hello(driver, make_hello(driver_node, key), peer()).response.ok());
  BOOST_TEST(order(driver, drain_within(std::numeric_limits<double>::quiet_NaN()), key).ok());
  BOOST_TEST((drained.get_future().get() == milliseconds(0)));
}

BOOST_AUTO_TEST_CASE(exit_messages_end_no_published_actor) {
  caf::scoped_actor tool(system);
  for (const auto reason : {caf::exit_reason::kill, caf::exit_reason::user_shutdown}) {
    tool->send_exit(node, reason);
    caf::anon_send_exit(node, reason);
  }
  BOOST_TEST(hello(tool, make_tool_hello(), nullptr).response.ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
