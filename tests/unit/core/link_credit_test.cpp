#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "core/admission_account.hpp"
#include "core/byte_credit.hpp"
#include "core/link_sender.hpp"
#include "core/reassembler.hpp"

namespace troupe {
namespace {

LinkBounds small_bounds() {
  LinkBounds bounds;
  bounds.chunk_budget = 1000;
  bounds.admission_budget = 5000;
  bounds.chunk_bytes = 100;
  return bounds;
}

OutgoingMessage message(std::string from, AdmissionUnit unit, std::size_t size,
                        std::string header = "") {
  return {std::move(from), "sink", unit, std::move(header), Blob::uninitialized(size)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(link_credit)

BOOST_AUTO_TEST_CASE(a_piece_is_admitted_when_nothing_is_in_flight_whatever_its_size) {
  ByteCredit credit(10);
  BOOST_TEST(credit.admits(100));
  credit.take(100);
  BOOST_TEST(!credit.admits(1));
  BOOST_TEST(credit.give_back(100));
  BOOST_TEST(credit.admits(10));
}

BOOST_AUTO_TEST_CASE(more_credit_than_was_taken_is_refused) {
  ByteCredit credit(10);
  credit.take(5);
  BOOST_TEST(!credit.give_back(6));
  BOOST_TEST(credit.in_flight() == 5u);
  AdmissionAccount account(10);
  account.take(5, 1);
  BOOST_TEST(!account.give_back(5, 2));
  BOOST_TEST(!account.give_back(6, 1));
  BOOST_TEST(account.held() == 5u);
}

BOOST_AUTO_TEST_CASE(a_unit_is_admitted_as_a_whole_once_no_other_is_held) {
  AdmissionAccount account(10);
  BOOST_TEST(account.admits(100, 1));
  account.take(100, 1);
  BOOST_TEST(account.admits(100, 1));
  account.take(100, 1);
  BOOST_TEST(!account.admits(1, 2));
  BOOST_TEST(account.give_back(195, 1));
  BOOST_TEST(account.admits(5, 2));
  BOOST_TEST(!account.admits(6, 2));
}

BOOST_AUTO_TEST_CASE(control_traffic_needs_no_admission_but_chunk_credit) {
  LinkSender sender(small_bounds(), false);
  for (AdmissionUnit unit = 0; unit < 20; ++unit) sender.enqueue(message("a", unit, 100));
  std::size_t sent = 0;
  while (sender.next_chunk()) ++sent;
  BOOST_TEST(sent == 10u);
  BOOST_TEST(sender.counters().peak_admission_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_message_of_no_bytes_is_one_chunk) {
  LinkSender sender(small_bounds(), true);
  sender.enqueue(message("a", 0, 0, "header"));
  const auto chunk = sender.next_chunk();
  BOOST_REQUIRE(chunk.has_value());
  BOOST_TEST(chunk->opening.has_value());
  BOOST_TEST(wire_bytes(*chunk) == 6u);
  BOOST_TEST(!sender.next_chunk().has_value());
  BOOST_TEST(sender.counters().queued_messages == 0u);
}

BOOST_AUTO_TEST_CASE(chunks_are_no_larger_than_the_budget_allows) {
  LinkBounds bounds = small_bounds();
  bounds.chunk_bytes = 1'000'000;
  LinkSender sender(bounds, true);
  sender.enqueue(message("a", 0, 5'000, std::string(100, 'h')));
  while (auto chunk = sender.next_chunk())
    BOOST_REQUIRE(sender.return_chunk_credit(wire_bytes(*chunk)).ok());
  BOOST_TEST(sender.counters().bytes == 5'100u);
  BOOST_TEST(sender.counters().peak_bytes_in_flight <= bounds.chunk_budget);
}

BOOST_AUTO_TEST_CASE(a_chunk_shares_the_memory_of_its_message) {
  LinkSender sender(small_bounds(), true);
  OutgoingMessage outgoing = message("a", 0, 150);
  const std::byte* data = outgoing.payload.data();
  sender.enqueue(std::move(outgoing));
  BOOST_TEST(sender.next_chunk()->piece.data() == data);
  BOOST_TEST(sender.next_chunk()->piece.data() == data + 100);
}

BOOST_AUTO_TEST_CASE(a_blocked_flow_is_passed_over_and_keeps_its_order) {
  LinkSender sender(small_bounds(), true);
  sender.enqueue(message("a", 0, 4000, "a0"));
  sender.enqueue(message("a", 1, 4000, "a1"));
  sender.enqueue(message("a", 2, 10, "a2"));
  sender.enqueue(message("b", 0, 10, "b0"));
  std::vector<std::string> begun;
  const auto run = [&] {
    while (auto chunk = sender.next_chunk()) {
      if (chunk->opening) begun.push_back(chunk->opening->header);
      BOOST_REQUIRE(sender.return_chunk_credit(wire_bytes(*chunk)).ok());
    }
  };
  run();
  BOOST_TEST(begun == (std::vector<std::string>{"a0", "b0"}), boost::test_tools::per_element());
  BOOST_REQUIRE(sender.return_admission_credit("a", "sink", 0, 4000).ok());
  run();
  BOOST_TEST(begun == (std::vector<std::string>{"a0", "b0", "a1", "a2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(credit_for_an_unknown_flow_is_an_error) {
  LinkSender sender(small_bounds(), true);
  BOOST_TEST(!sender.return_admission_credit("x", "y", 0, 1).ok());
  BOOST_TEST(!sender.return_chunk_credit(1).ok());
}

// Random flows, units and sizes against a receiver that places chunks and releases messages at
// random: whatever happens, no bound is ever exceeded, everything arrives, in order.
BOOST_AUTO_TEST_CASE(no_budget_is_ever_exceeded_and_everything_arrives) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      const LinkBounds bounds = small_bounds();
      LinkSender sender(bounds, true);
      Reassembler receiver(bounds);
      std::deque<Chunk> wire;
      std::vector<IncomingMessage> held;
      std::map<std::string, std::uint64_t> largest_unit;
      std::map<std::string, int> arrived;
      constexpr int flows = 3;
      constexpr int per_flow = 60;

      for (int i = 0; i < per_flow; ++i) {
        for (int flow = 0; flow < flows; ++flow) {
          const std::string from = "flow" + std::to_string(flow);
          const std::size_t size = random() % 10 == 0 ? random() % 20'000 : random() % 800;
          largest_unit[from] = std::max<std::uint64_t>(largest_unit[from], size);
          sender.enqueue(message(from, i, size, std::to_string(i)));
        }
      }
      std::uint64_t wire_count = 0;
      for (bool busy = true; busy;) {
        while (auto chunk = sender.next_chunk()) {
          wire_count += wire_bytes(*chunk);
          wire.push_back(std::move(*chunk));
        }
        BOOST_REQUIRE_LE(wire_count, bounds.chunk_budget);
        BOOST_REQUIRE_EQUAL(wire_count, sender.counters().bytes_in_flight);
        std::map<std::string, std::uint64_t> held_by_flow;
        for (const auto& one : held) held_by_flow[one.opening.from] += one.payload.size();
        for (const auto& [from, bytes] : held_by_flow)
          BOOST_REQUIRE_LE(bytes, std::max(bounds.admission_budget, largest_unit[from]));

        busy = !wire.empty() || !held.empty();
        if (!wire.empty() && (held.empty() || random() % 4 != 0)) {
          Chunk chunk = std::move(wire.front());
          wire.pop_front();
          wire_count -= wire_bytes(chunk);
          BOOST_REQUIRE(sender.return_chunk_credit(wire_bytes(chunk)).ok());
          auto whole = receiver.accept(std::move(chunk));
          BOOST_REQUIRE(whole.ok());
          if (!*whole) continue;
          const Opening& opening = (*whole)->opening;
          BOOST_REQUIRE_EQUAL(opening.header, std::to_string(arrived[opening.from]++));
          held.push_back(std::move(**whole));
        } else if (!held.empty()) {
          const std::size_t drawn = random() % held.size();
          const Opening& opening = held[drawn].opening;
          BOOST_REQUIRE(sender
                            .return_admission_credit(opening.from, opening.to, opening.unit,
                                                     held[drawn].payload.size())
                            .ok() ||
                        held[drawn].payload.empty());
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(drawn));
        }
      }
      for (int flow = 0; flow < flows; ++flow)
        BOOST_REQUIRE_EQUAL(arrived["flow" + std::to_string(flow)], per_flow);
      BOOST_TEST(sender.counters().bytes_in_flight == 0u);
      BOOST_TEST(sender.counters().queued_messages == 0u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
