#include <string>

#include <boost/test/unit_test.hpp>

#include <google/protobuf/unknown_field_set.h>

#include "transport/frame_codec.hpp"
#include "troupe/runtime/v1/link.pb.h"

namespace troupe {

BOOST_AUTO_TEST_SUITE(frame_codec)

BOOST_AUTO_TEST_CASE(a_chunk_survives_the_wire) {
  Chunk chunk;
  chunk.message = 5;
  chunk.opening = Opening{"from", "to", 3, 9, "header"};
  chunk.piece = Blob::copy_of("abc", 3);
  auto decoded = decode(Frame{"a", encode_header(TrafficClass::gradient, chunk), chunk.piece});
  BOOST_REQUIRE(decoded.ok());
  const auto* frame = std::get_if<ChunkFrame>(&*decoded);
  BOOST_REQUIRE(frame != nullptr);
  BOOST_TEST((frame->traffic == TrafficClass::gradient));
  BOOST_TEST(frame->chunk.message == 5u);
  BOOST_REQUIRE(frame->chunk.opening.has_value());
  BOOST_TEST(frame->chunk.opening->from == "from");
  BOOST_TEST(frame->chunk.opening->unit == 9u);
  BOOST_TEST(frame->chunk.opening->header == "header");
  BOOST_TEST(frame->chunk.piece.data() == chunk.piece.data());
}

BOOST_AUTO_TEST_CASE(credit_survives_the_wire) {
  auto decoded =
      decode(Frame{"a", encode_header(CreditFrame{TrafficClass::batch, 1, 2, "f", "t", 3}), {}});
  BOOST_REQUIRE(decoded.ok());
  const auto* frame = std::get_if<CreditFrame>(&*decoded);
  BOOST_REQUIRE(frame != nullptr);
  BOOST_TEST((frame->traffic == TrafficClass::batch));
  BOOST_TEST(frame->chunk_bytes == 1u);
  BOOST_TEST(frame->admission_bytes == 2u);
  BOOST_TEST(frame->to == "t");
}

BOOST_AUTO_TEST_CASE(what_the_header_does_not_declare_is_refused) {
  runtime::v1::FrameHeader header;
  auto& chunk = *header.mutable_chunk();
  chunk.mutable_opening()
      ->GetReflection()
      ->MutableUnknownFields(chunk.mutable_opening())
      ->AddVarint(77, 1);
  BOOST_TEST(!decode(Frame{"a", header.SerializeAsString(), {}}).ok());
  header.Clear();
  header.mutable_chunk()->set_traffic(traffic_class_count);
  BOOST_TEST(!decode(Frame{"a", header.SerializeAsString(), {}}).ok());
  BOOST_TEST(!decode(Frame{"a", "", {}}).ok());
  BOOST_TEST(!decode(Frame{"a", "\xff\xff", {}}).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
