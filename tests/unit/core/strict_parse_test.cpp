#include "troupe/strict_parse.hpp"

#include <google/protobuf/unknown_field_set.h>
#include <boost/test/unit_test.hpp>

#include "troupe/runtime/v1/control.pb.h"

namespace troupe {
namespace {

namespace v1 = runtime::v1;

void add_unknown_field(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(999, 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(strict_parse)

BOOST_AUTO_TEST_CASE(a_message_survives) {
  v1::Join join;
  join.add_peers()->set_name("a");
  auto parsed = parse_strictly<v1::Join>(join.SerializeAsString());
  BOOST_REQUIRE(parsed.ok());
  BOOST_TEST(parsed->peers(0).name() == "a");
}

BOOST_AUTO_TEST_CASE(garbage_is_refused_with_its_size) {
  auto parsed = parse_strictly<v1::Join>("\xff\xff\xff");
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.error().what == "no troupe.runtime.v1.Join in 3 bytes");
}

BOOST_AUTO_TEST_CASE(unknown_fields_are_refused_at_any_depth) {
  v1::Join join;
  add_unknown_field(*join.add_peers());
  auto parsed = parse_strictly<v1::Join>(join.SerializeAsString());
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.error().what == "troupe.runtime.v1.Join with unknown fields");
}

BOOST_AUTO_TEST_CASE(unknown_fields_are_found_inside_an_any) {
  v1::Drain content;
  v1::Spawn spawn;
  spawn.mutable_config()->PackFrom(content);
  BOOST_TEST(parse_strictly<v1::Spawn>(spawn.SerializeAsString()).ok());
  add_unknown_field(content);
  spawn.mutable_config()->PackFrom(content);
  BOOST_TEST(!parse_strictly<v1::Spawn>(spawn.SerializeAsString()).ok());
  BOOST_TEST(!unpack_strictly<v1::Drain>(spawn.config()).ok());
  spawn.mutable_config()->set_value("\xff\xff");
  BOOST_TEST(!parse_strictly<v1::Spawn>(spawn.SerializeAsString()).ok());
}

BOOST_AUTO_TEST_CASE(an_any_of_a_type_that_is_not_linked_is_left_to_others) {
  v1::Spawn spawn;
  spawn.mutable_config()->set_type_url("type.googleapis.com/troupe.elsewhere.v1.Thing");
  spawn.mutable_config()->set_value("\xff\xff");
  BOOST_TEST(parse_strictly<v1::Spawn>(spawn.SerializeAsString()).ok());
}

BOOST_AUTO_TEST_CASE(an_any_of_another_type_is_refused) {
  google::protobuf::Any any;
  any.PackFrom(v1::Drain());
  BOOST_TEST(unpack_strictly<v1::Drain>(any).ok());
  BOOST_TEST(!unpack_strictly<v1::Spawn>(any).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
