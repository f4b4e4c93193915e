#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include "transport/wire.hpp"

namespace troupe {
namespace {

struct Fixture {
  caf::actor_system_config config;
  caf::actor_system system{config};

  template <class T>
  std::vector<char> save(T value) {
    std::vector<char> buffer;
    caf::binary_serializer sink(system, buffer);
    BOOST_REQUIRE(!sink(value));
    return buffer;
  }

  template <class T>
  bool load(const std::vector<char>& buffer, T& value) {
    caf::binary_deserializer source(system, buffer);
    return !source(value);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(wire, Fixture)

BOOST_AUTO_TEST_CASE(a_frame_survives_serialization) {
  Frame loaded;
  const RunKey key = *RunKey::from_bytes("0123456789abcdef");
  BOOST_REQUIRE(load(save(Frame{"node", "header", Blob::copy_of("payload", 7), key}), loaded));
  BOOST_TEST((loaded.run_key == key));
  BOOST_TEST(loaded.from == "node");
  BOOST_TEST(loaded.header == "header");
  BOOST_REQUIRE_EQUAL(loaded.payload.size(), 7u);
  BOOST_TEST(std::memcmp(loaded.payload.data(), "payload", 7) == 0);
}

BOOST_AUTO_TEST_CASE(empty_fields_survive_serialization) {
  Frame loaded{"x", "y", Blob::copy_of("z", 1)};
  BOOST_REQUIRE(load(save(Frame{}), loaded));
  BOOST_TEST(loaded.from.empty());
  BOOST_TEST(loaded.payload.empty());
}

BOOST_AUTO_TEST_CASE(every_truncation_is_an_error) {
  const auto buffer = save(Frame{"node", "header", Blob::copy_of("payload", 7)});
  for (std::size_t size = 0; size < buffer.size(); ++size) {
    Frame loaded;
    BOOST_TEST(!load(std::vector<char>(buffer.begin(), buffer.begin() + size), loaded));
  }
}

BOOST_AUTO_TEST_CASE(a_length_beyond_the_message_takes_no_memory) {
  // All ones: a length of 2^64 - 1 for the first field.
  ControlBytes control;
  BOOST_TEST(!load(std::vector<char>(16, '\xff'), control));
  BOOST_TEST(control.bytes.capacity() < 1000u);
}

BOOST_AUTO_TEST_CASE(wire_messages_print_without_their_bytes) {
  BOOST_TEST(to_string(ControlBytes{std::string(1000, 'x')}) == "control(1000)");
  BOOST_TEST(to_string(Frame{"node", "", Blob::copy_of("abc", 3)}) == "frame(node, blob(3))");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
