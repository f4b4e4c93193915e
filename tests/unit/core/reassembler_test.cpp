#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "core/reassembler.hpp"

namespace troupe {
namespace {

Blob bytes(const std::string& text) { return Blob::copy_of(text.data(), text.size()); }

std::string text(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

Chunk first(std::uint64_t message, std::uint64_t size, const std::string& piece) {
  Chunk chunk;
  chunk.message = message;
  chunk.opening = Opening{"from", "to", size, 0, "header"};
  chunk.piece = bytes(piece);
  return chunk;
}

Chunk next(std::uint64_t message, std::uint64_t offset, const std::string& piece) {
  Chunk chunk;
  chunk.message = message;
  chunk.offset = offset;
  chunk.piece = bytes(piece);
  return chunk;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reassembler)

BOOST_AUTO_TEST_CASE(pieces_are_put_together) {
  Reassembler reassembler{LinkBounds{}};
  BOOST_TEST(!reassembler.accept(first(0, 7, "abc"))->has_value());
  BOOST_TEST(!reassembler.accept(next(0, 3, "de"))->has_value());
  const auto whole = reassembler.accept(next(0, 5, "fg"));
  BOOST_REQUIRE(whole.ok());
  BOOST_REQUIRE(whole->has_value());
  BOOST_TEST(text((*whole)->payload) == "abcdefg");
  BOOST_TEST((*whole)->opening.header == "header");
}

BOOST_AUTO_TEST_CASE(a_message_of_one_chunk_keeps_its_memory) {
  Reassembler reassembler{LinkBounds{}};
  Chunk chunk = first(0, 3, "abc");
  const std::byte* data = chunk.piece.data();
  BOOST_TEST((*reassembler.accept(std::move(chunk)))->payload.data() == data);
}

BOOST_AUTO_TEST_CASE(an_empty_payload_is_a_message) {
  Reassembler reassembler{LinkBounds{}};
  BOOST_TEST(reassembler.accept(first(0, 0, ""))->has_value());
  BOOST_TEST(reassembler.accept(first(1, 0, ""))->has_value());
}

BOOST_AUTO_TEST_CASE(hostile_chunks_are_refused_before_anything_is_written) {
  LinkBounds bounds;
  bounds.max_message_bytes = 1000;
  bounds.max_header_bytes = 10;
  Chunk long_header = first(0, 1, "a");
  long_header.opening->header.assign(11, 'x');
  Chunk shifted = first(0, 5, "ab");
  shifted.offset = 1;
  const std::vector<std::vector<Chunk>> cases = {
      {first(1, 3, "abc")},                                  // number out of turn
      {next(0, 0, "abc")},                                   // no opening
      {first(0, 1001, "abc")},                               // over the limit
      {first(0, ~std::uint64_t{0}, "abc")},                  // far over it
      {long_header},                                         //
      {shifted},                                             //
      {first(0, 2, "abc")},                                  // longer than announced
      {first(0, 5, "")},                                     // empty first piece
      {first(0, 5, "ab"), first(0, 5, "ab")},                // second opening
      {first(0, 5, "ab"), next(0, 0, "ab")},                 // duplicate
      {first(0, 5, "ab"), next(0, 1, "bc")},                 // overlap
      {first(0, 5, "ab"), next(0, 3, "d")},                  // gap
      {first(0, 5, "ab"), next(0, 2, "cdef")},               // beyond the end
      {first(0, 5, "ab"), next(0, ~std::uint64_t{0}, "c")},  // offset that wraps
      {first(0, 5, "ab"), next(0, 2, "")},                   // empty piece
      {first(0, 5, "ab"), next(1, 2, "cde")},                // another message's
      {first(0, 2, "ab"), first(0, 2, "ab")},                // number used twice
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    BOOST_TEST_CONTEXT("case " << i) {
      Reassembler reassembler(bounds);
      for (std::size_t j = 0; j < cases[i].size(); ++j)
        BOOST_TEST(reassembler.accept(cases[i][j]).ok() == (j + 1 < cases[i].size()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
