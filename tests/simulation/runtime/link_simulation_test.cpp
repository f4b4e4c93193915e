#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "support/simulation.hpp"
#include "transport/early_frames.hpp"
#include "transport/endpoint.hpp"
#include "transport/frame_codec.hpp"
#include "transport/wire.hpp"

namespace troupe::testing {
namespace {

using std::chrono::milliseconds;

/// Fills a blob with a pattern that depends on `tag`.
Blob pattern(std::size_t size, std::size_t tag) {
  Blob blob = Blob::uninitialized(size);
  for (std::size_t i = 0; i < size; ++i)
    blob.mutable_data()[i] = static_cast<std::byte>((i * 31 + tag * 7 + i / 251) & 0xff);
  return blob;
}

bool equal(const Blob& a, const Blob& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

/// What a receiving actor has got. Deliveries are kept, with their receipts, unless `release`.
struct Inbox {
  bool release = true;
  std::vector<Delivery> deliveries;
  std::uint64_t held = 0;
  std::uint64_t peak_held = 0;

  void take(const Delivery& delivery) {
    deliveries.push_back(delivery);
    held += delivery.payload.size();
    peak_held = std::max(peak_held, held);
    if (release) release_last();
  }
  void release_last() {
    held -= deliveries.back().payload.size();
    deliveries.back().payload = {};
    deliveries.back().receipt.reset();
  }
  void release_first_held() {
    for (auto& delivery : deliveries) {
      if (!delivery.receipt) continue;
      held -= delivery.payload.size();
      delivery.payload = {};
      delivery.receipt.reset();
      return;
    }
  }
};

caf::behavior receiver(caf::event_based_actor*, std::shared_ptr<Inbox> inbox) {
  return {[inbox](const Delivery& delivery) { inbox->take(delivery); }};
}

runtime::v1::LinkLimits limits(std::uint64_t chunk_budget, std::uint64_t admission,
                               std::uint64_t chunk) {
  runtime::v1::LinkLimits result;
  result.set_chunk_budget_bytes(chunk_budget);
  result.set_admission_budget_bytes(admission);
  result.set_chunk_bytes(chunk);
  return result;
}

runtime::v1::Status::LinkStatus status_of(SimulatedCluster& cluster, const std::string& node,
                                          TrafficClass traffic) {
  for (const auto& link : cluster.link_status(node))
    if (link.traffic() == static_cast<std::uint32_t>(traffic)) return link;
  return {};
}

/// The answer to a request to a node's endpoint.
template <class Answer, class Request>
Answer ask(SimulatedCluster& cluster, const std::string& node, Request request) {
  Answer result{};
  caf::scoped_actor self(cluster.system());
  auto pending = self->request(cluster.endpoint(node), caf::infinite, std::move(request));
  cluster.run_until_idle();
  pending.receive([&](const Answer& answer) { result = answer; }, [](const caf::error&) {});
  return result;
}

LinkStatusList link_state(SimulatedCluster& cluster, const std::string& node) {
  return ask<LinkStatusList>(cluster, node, GetLinkStatus{});
}

bool attach(SimulatedCluster& cluster, const std::string& node, const std::string& peer,
            const caf::actor& endpoint) {
  return ask<bool>(cluster, node, AttachPeer{peer, endpoint});
}

struct TwoNodes {
  explicit TwoNodes(runtime::v1::LinkLimits links = {}, std::uint64_t seed = 1)
      : cluster({"a", "b"}, options(std::move(links), seed)) {
    cluster.bind("b", "sink", cluster.system().spawn(receiver, inbox));
    cluster.run_until_idle();
  }

  static SimulationOptions options(runtime::v1::LinkLimits links, std::uint64_t seed) {
    SimulationOptions result;
    result.seed = seed;
    result.limits = std::move(links);
    return result;
  }

  void send(TrafficClass traffic, AdmissionUnit unit, Blob payload, std::string header = "h",
            std::string from = "source") {
    cluster.mailer("a").send(Parcel{
        {"b", "sink"}, std::move(from), traffic, unit, std::move(header), std::move(payload)});
  }

  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  SimulatedCluster cluster;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(link_simulation)

BOOST_AUTO_TEST_CASE(a_parcel_arrives_with_its_header_and_payload) {
  TwoNodes nodes;
  nodes.send(TrafficClass::activation, 7, pattern(1000, 1), "head");
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 1u);
  const Delivery& delivery = nodes.inbox->deliveries[0];
  BOOST_TEST((delivery.from == ActorAddress{"a", "source"}));
  BOOST_TEST(delivery.header == "head");
  BOOST_TEST(delivery.unit == 7u);
}

BOOST_AUTO_TEST_CASE(a_first_message_larger_than_every_budget_passes_piece_by_piece) {
  TwoNodes nodes(limits(65536, 1000, 4096));
  nodes.inbox->release = false;
  const Blob payload = pattern(1'000'003, 2);
  nodes.send(TrafficClass::activation, 0, payload);
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 1u);
  BOOST_TEST(equal(nodes.inbox->deliveries[0].payload, payload));
  const auto status = status_of(nodes.cluster, "a", TrafficClass::activation);
  BOOST_TEST(status.peak_bytes_in_flight() <= 65536u);
  BOOST_TEST(status.bytes_in_flight() == 0u);
  BOOST_TEST(status.peak_admission_bytes() == 1'000'003u);
}

BOOST_AUTO_TEST_CASE(parcels_of_one_flow_keep_their_order_whatever_the_seed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      TwoNodes nodes(limits(65536, 100'000, 4096), seed);
      for (std::size_t i = 0; i < 100; ++i)
        nodes.send(TrafficClass::activation, i, pattern((i * 977) % 20'000, i), std::to_string(i));
      nodes.cluster.run_until_idle();
      BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 100u);
      for (std::size_t i = 0; i < 100; ++i)
        BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries[i].header, std::to_string(i));
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_pass_while_activations_wait_for_admission) {
  TwoNodes nodes(limits(65536, 10'000, 4096));
  nodes.inbox->release = false;
  for (std::size_t i = 0; i < 5; ++i) nodes.send(TrafficClass::activation, i, pattern(8'000, i));
  nodes.cluster.run_until_idle();
  BOOST_TEST(nodes.inbox->deliveries.size() == 1u);
  nodes.send(TrafficClass::gradient, 0, pattern(8'000, 9), "gradient");
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 2u);
  BOOST_TEST(nodes.inbox->deliveries[1].header == "gradient");
}

BOOST_AUTO_TEST_CASE(a_blocked_flow_does_not_hold_up_another_of_its_class) {
  TwoNodes nodes(limits(65536, 10'000, 4096));
  nodes.inbox->release = false;
  for (std::size_t i = 0; i < 5; ++i) nodes.send(TrafficClass::activation, i, pattern(8'000, i));
  nodes.send(TrafficClass::activation, 0, pattern(5'000, 8), "other", "second source");
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 2u);
  BOOST_TEST(nodes.inbox->deliveries[1].header == "other");
}

BOOST_AUTO_TEST_CASE(a_slow_receiver_bounds_what_is_in_flight_and_held) {
  constexpr std::uint64_t chunk_budget = 65536;
  constexpr std::uint64_t admission = 200'000;
  TwoNodes nodes(limits(chunk_budget, admission, 4096));
  nodes.inbox->release = false;
  constexpr std::size_t messages = 10'000;
  const Blob payload = pattern(6'000, 3);
  for (std::size_t i = 0; i < messages; ++i) nodes.send(TrafficClass::activation, i, payload);
  std::size_t released = 0;
  while (released < messages) {
    nodes.cluster.run_until_idle();
    BOOST_REQUIRE_GT(nodes.inbox->deliveries.size(), released);
    BOOST_REQUIRE_LE(nodes.inbox->held, admission);
    // One by one: the slowest receiver there is.
    nodes.inbox->deliveries[released].payload = {};
    nodes.inbox->deliveries[released].receipt.reset();
    nodes.inbox->held -= payload.size();
    ++released;
  }
  const auto status = status_of(nodes.cluster, "a", TrafficClass::activation);
  BOOST_TEST(status.messages() == messages);
  BOOST_TEST(status.peak_bytes_in_flight() <= chunk_budget);
  BOOST_TEST(status.peak_admission_bytes() <= admission);
  BOOST_TEST(nodes.inbox->peak_held <= admission);
  BOOST_TEST(status.queued_messages() == 0u);
}

BOOST_AUTO_TEST_CASE(parcels_to_the_own_node_are_moved_under_the_same_admission_credit) {
  SimulatedCluster cluster({"a"}, TwoNodes::options(limits(65536, 10'000, 4096), 1));
  auto inbox = std::make_shared<Inbox>();
  inbox->release = false;
  cluster.bind("a", "sink", cluster.system().spawn(receiver, inbox));
  const Blob payload = pattern(8'000, 1);
  for (std::size_t i = 0; i < 3; ++i)
    cluster.mailer("a").send(
        Parcel{{"a", "sink"}, "source", TrafficClass::activation, i, "", payload});
  cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(inbox->deliveries.size(), 1u);
  BOOST_TEST(inbox->deliveries[0].payload.data() == payload.data());
  inbox->release_first_held();
  cluster.run_until_idle();
  BOOST_TEST(inbox->deliveries.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_parcel_for_an_unknown_actor_is_a_failure_on_the_receiving_node) {
  TwoNodes nodes;
  nodes.cluster.mailer("a").send(
      Parcel{{"b", "nobody"}, "source", TrafficClass::gradient, 0, "", {}});
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.cluster.observed("b").failures.size(), 1u);
  BOOST_TEST(nodes.cluster.observed("b").failures[0].to_string().find("nobody") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_parcel_for_an_unknown_node_is_a_failure_on_the_sending_node) {
  TwoNodes nodes;
  nodes.cluster.mailer("a").send(
      Parcel{{"c", "sink"}, "source", TrafficClass::gradient, 0, "", {}});
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.cluster.observed("a").failures.size(), 1u);
  BOOST_TEST(nodes.cluster.observed("a").failures[0].to_string().find("node c") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_actor_that_dies_while_its_process_lives_is_detected) {
  TwoNodes nodes;
  const auto victim = nodes.cluster.system().spawn(receiver, nodes.inbox);
  nodes.cluster.bind("b", "victim", victim);
  nodes.cluster.run_until_idle();
  caf::anon_send_exit(victim, caf::exit_reason::unhandled_exception);
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.cluster.observed("b").failures.size(), 1u);
  BOOST_TEST(nodes.cluster.observed("b").failures[0].where == "b/victim");
}

BOOST_AUTO_TEST_CASE(a_malformed_frame_is_a_failure_that_names_the_peer) {
  for (const std::string& header :
       {std::string("\xff\xff garbage"), std::string(), std::string("\x7a\x01x", 3)}) {
    TwoNodes nodes;
    caf::anon_send(nodes.cluster.endpoint("b"), Frame{"a", header, {}});
    nodes.cluster.run_until_idle();
    BOOST_REQUIRE_EQUAL(nodes.cluster.observed("b").failures.size(), 1u);
    BOOST_TEST(nodes.cluster.observed("b").failures[0].where == "link from a to b");
    // The link is dead; nothing more is said about it.
    caf::anon_send(nodes.cluster.endpoint("b"), Frame{"a", header, {}});
    nodes.cluster.run_until_idle();
    BOOST_TEST(nodes.cluster.observed("b").failures.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(idle_peers_stay_alive) {
  TwoNodes nodes;
  nodes.cluster.advance(std::chrono::minutes(2));
  BOOST_TEST(nodes.cluster.observed("a").down.empty());
  BOOST_TEST(nodes.cluster.observed("b").down.empty());
}

BOOST_AUTO_TEST_CASE(a_killed_node_is_noticed_at_once_and_published_once) {
  TwoNodes nodes;
  nodes.cluster.kill("b");
  nodes.cluster.run_until_idle();
  nodes.cluster.advance(std::chrono::seconds(10));
  const auto& down = nodes.cluster.observed("a").down;
  BOOST_REQUIRE_EQUAL(down.size(), 1u);
  BOOST_TEST(down[0].node == "b");
  BOOST_TEST(down[0].reason == "connection closed");
}

BOOST_AUTO_TEST_CASE(a_frozen_node_is_noticed_within_the_timeout) {
  TwoNodes nodes;
  nodes.cluster.freeze("b");
  nodes.cluster.advance(milliseconds(2900));
  BOOST_TEST(nodes.cluster.observed("a").down.empty());
  nodes.cluster.advance(milliseconds(700));
  const auto& down = nodes.cluster.observed("a").down;
  BOOST_REQUIRE_EQUAL(down.size(), 1u);
  BOOST_TEST(down[0].reason == "no sign of life for 3.0 s");
}

BOOST_AUTO_TEST_CASE(a_process_that_was_stopped_itself_does_not_blame_its_peers) {
  TwoNodes nodes;
  nodes.cluster.freeze("b");
  nodes.cluster.advance(milliseconds(2000));
  nodes.cluster.thaw("b");
  nodes.cluster.advance(std::chrono::seconds(10));
  BOOST_TEST(nodes.cluster.observed("a").down.empty());
  BOOST_TEST(nodes.cluster.observed("b").down.empty());
}

BOOST_AUTO_TEST_CASE(a_cut_network_is_noticed_on_both_sides) {
  TwoNodes nodes;
  nodes.cluster.cut("a", "b");
  nodes.cluster.advance(std::chrono::seconds(4));
  BOOST_TEST(nodes.cluster.observed("a").down.size() == 1u);
  BOOST_TEST(nodes.cluster.observed("b").down.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_peer_that_left_in_order_is_no_failure) {
  TwoNodes nodes;
  caf::anon_send(nodes.cluster.endpoint("a"), DetachPeer{"b"});
  nodes.cluster.run_until_idle();
  nodes.cluster.kill("b");
  nodes.cluster.advance(std::chrono::seconds(10));
  nodes.send(TrafficClass::control, 0, {});
  nodes.cluster.run_until_idle();
  BOOST_TEST(nodes.cluster.observed("a").down.empty());
  BOOST_TEST(nodes.cluster.observed("a").failures.empty());
}

BOOST_AUTO_TEST_CASE(late_subscribers_learn_what_has_happened) {
  TwoNodes nodes;
  nodes.cluster.kill("b");
  nodes.cluster.run_until_idle();
  auto seen = std::make_shared<std::vector<std::string>>();
  const auto observer = nodes.cluster.system().spawn([seen](caf::event_based_actor*) {
    return caf::behavior{[seen](const NodeDown& down) { seen->push_back(down.node); }};
  });
  nodes.cluster.host("a", observer);
  caf::anon_send(nodes.cluster.endpoint("a"), Subscribe{observer});
  nodes.cluster.run_until_idle();
  BOOST_TEST(*seen == std::vector<std::string>{"b"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(frames_of_a_peer_that_attached_first_are_kept) {
  TwoNodes nodes;
  Chunk chunk;
  chunk.opening = Opening{"source", "sink", 3, 0, "early"};
  chunk.piece = pattern(3, 1);
  caf::anon_send(nodes.cluster.endpoint("b"),
                 Frame{"c", encode_header(TrafficClass::gradient, chunk), chunk.piece});
  nodes.cluster.run_until_idle();
  BOOST_TEST(nodes.inbox->deliveries.empty());
  caf::anon_send(nodes.cluster.endpoint("b"), AttachPeer{"c", nodes.cluster.endpoint("a")});
  nodes.cluster.run_until_idle();
  BOOST_REQUIRE_EQUAL(nodes.inbox->deliveries.size(), 1u);
  BOOST_TEST(nodes.inbox->deliveries[0].header == "early");
}

BOOST_AUTO_TEST_CASE(strangers_neither_fail_a_job_nor_cost_memory) {
  TwoNodes nodes;
  const RunKey other = *RunKey::from_bytes("another run's id");
  Chunk chunk;
  chunk.opening = Opening{"source", "sink", 1 << 20, 0, ""};
  const std::string header = encode_header(TrafficClass::gradient, chunk);
  std::uint64_t sent = 0;
  const auto send = [&](const std::string& from, const std::string& text, const Blob& payload) {
    caf::anon_send(nodes.cluster.endpoint("b"), Frame{from, text, payload, other});
    ++sent;
  };
  for (int i = 0; i < 400; ++i) send("stranger " + std::to_string(i), header, pattern(1 << 20, 1));
  // Also in the name of a peer, and nothing that a peer would say.
  send("a", "\xff\xff garbage", {});
  send("a", encode_header(CreditFrame{TrafficClass::gradient, 1 << 30, 0, "", "", 0}), {});
  nodes.cluster.run_until_idle();
  const LinkStatusList status = link_state(nodes.cluster, "b");
  BOOST_TEST(status.refused_frames == sent);
  BOOST_TEST(status.early_bytes == 0u);
  BOOST_TEST(nodes.cluster.observed("b").failures.empty());
  BOOST_TEST(nodes.cluster.observed("b").down.empty());
  nodes.send(TrafficClass::gradient, 0, pattern(10, 1));
  nodes.cluster.run_until_idle();
  BOOST_TEST(nodes.inbox->deliveries.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_strangers_heartbeats_keep_no_dead_peer_alive) {
  TwoNodes nodes;
  nodes.cluster.freeze("b");
  const RunKey other = *RunKey::from_bytes("another run's id");
  for (int i = 0; i < 80; ++i) {
    caf::anon_send(nodes.cluster.endpoint("a"),
                   Frame{"b", encode_header(HeartbeatFrame{1}), {}, other});
    nodes.cluster.advance(milliseconds(50));
  }
  BOOST_TEST(nodes.cluster.observed("a").down.size() == 1u);
}

BOOST_AUTO_TEST_CASE(early_frames_beyond_any_credit_are_dropped_and_no_failure) {
  TwoNodes nodes;
  const Blob piece = pattern(1 << 20, 1);
  for (int i = 0; i < 100; ++i)
    caf::anon_send(nodes.cluster.endpoint("b"), Frame{"c", "anything", piece});
  nodes.cluster.run_until_idle();
  BOOST_TEST(link_state(nodes.cluster, "b").early_bytes <=
             EarlyFrames(LinkBounds{}).max_bytes_of_peer());
  BOOST_TEST(nodes.cluster.observed("b").failures.empty());
}

BOOST_AUTO_TEST_CASE(a_name_with_a_live_endpoint_cannot_be_taken) {
  TwoNodes nodes;
  const auto impostor = nodes.cluster.system().spawn(receiver, nodes.inbox);
  nodes.cluster.host("b", impostor);
  BOOST_TEST(attach(nodes.cluster, "b", "a", nodes.cluster.endpoint("a")));
  BOOST_TEST(!attach(nodes.cluster, "b", "a", impostor));
  BOOST_TEST(!attach(nodes.cluster, "b", "b", impostor));
  nodes.send(TrafficClass::gradient, 0, pattern(10, 1));
  nodes.cluster.run_until_idle();
  BOOST_TEST(nodes.inbox->deliveries.size() == 1u);
  nodes.cluster.kill("a");
  nodes.cluster.run_until_idle();
  BOOST_TEST(attach(nodes.cluster, "b", "a", impostor));
}

BOOST_AUTO_TEST_CASE(two_sides_that_flood_each_other_do_not_wait_for_each_other) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      TwoNodes nodes(limits(65536, 10'000, 4096), seed);
      auto other = std::make_shared<Inbox>();
      nodes.cluster.bind("a", "sink", nodes.cluster.system().spawn(receiver, other));
      // Each message is larger than every budget.
      const Blob payload = pattern(300'001, seed);
      for (const auto traffic : {TrafficClass::activation, TrafficClass::gradient}) {
        for (std::size_t i = 0; i < 20; ++i) {
          nodes.send(traffic, i, payload);
          nodes.cluster.mailer("b").send(Parcel{{"a", "sink"}, "source", traffic, i, "h", payload});
        }
      }
      nodes.cluster.run_until_idle();
      BOOST_TEST(nodes.inbox->deliveries.size() == 40u);
      BOOST_TEST(other->deliveries.size() == 40u);
      for (const char* node : {"a", "b"})
        BOOST_TEST(status_of(nodes.cluster, node, TrafficClass::gradient).peak_bytes_in_flight() <=
                   65536u);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_run) {
  const auto run = [](std::uint64_t seed) {
    SimulatedCluster cluster({"a", "b", "c"}, TwoNodes::options({}, seed));
    auto inbox = std::make_shared<Inbox>();
    cluster.bind("c", "sink", cluster.system().spawn(receiver, inbox));
    for (int i = 0; i < 20; ++i) {
      for (const char* node : {"a", "b"})
        cluster.mailer(node).send(
            Parcel{{"c", "sink"}, "source", TrafficClass::control, 0, node, {}});
    }
    cluster.run_until_idle();
    std::string order;
    for (const auto& delivery : inbox->deliveries) order += delivery.header;
    return order;
  };
  BOOST_TEST(run(1) == run(1));
  BOOST_TEST(run(1).size() == 40u);
  BOOST_TEST(run(1) != run(2));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::testing
