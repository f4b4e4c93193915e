#include "actor/control_codec.hpp"

#include <boost/test/unit_test.hpp>

namespace troupe {

namespace v1 = runtime::v1;

BOOST_AUTO_TEST_SUITE(control_codec)

BOOST_AUTO_TEST_CASE(a_request_survives) {
  v1::Request request;
  request.mutable_stop_worker()->set_pid(7);
  auto decoded = decode_request(encode(request));
  BOOST_REQUIRE(decoded.ok());
  BOOST_TEST(decoded->stop_worker().pid() == 7);
}

BOOST_AUTO_TEST_CASE(a_failure_comes_back_as_its_error) {
  auto decoded = decode_response(encode_failure(cluster_error("node b", "is gone", "start it")));
  BOOST_REQUIRE(!decoded.ok());
  BOOST_TEST(decoded.error().to_string() == "node b: is gone; start it");
  BOOST_TEST(exit_code(decoded.error().code) == 3);
  // A code of a later version is a failure all the same.
  v1::Response response;
  response.mutable_failure()->set_code(99);
  BOOST_TEST(exit_code(decode_response(encode(response)).error().code) == 1);
}

BOOST_AUTO_TEST_CASE(garbage_and_emptiness_are_refused) {
  BOOST_TEST(!decode_request({"\xff\xff\xff"}).ok());
  BOOST_TEST(!decode_request({""}).ok());
  BOOST_TEST(!decode_response({std::string(1000, '\x08')}).ok());
}

BOOST_AUTO_TEST_CASE(unknown_fields_are_refused_at_any_depth) {
  v1::Request request;
  request.mutable_join()->add_peers()->set_name("a");
  BOOST_TEST(decode_request(encode(request)).ok());
  v1::Join::Peer& peer = *request.mutable_join()->mutable_peers(0);
  peer.GetReflection()->MutableUnknownFields(&peer)->AddVarint(999, 1);
  BOOST_TEST(!decode_request(encode(request)).ok());
  request.mutable_get_status();
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(999, 1);
  BOOST_TEST(!decode_request(encode(request)).ok());
}

BOOST_AUTO_TEST_CASE(peers_of_another_build_are_told_apart) {
  const v1::Hello same = make_hello("a", RunKey()).hello();
  BOOST_TEST(check_peer("node a", same).ok());
  v1::Hello hello = same;
  hello.set_descriptor_hash(hello.descriptor_hash() + 1);
  BOOST_TEST(!check_peer("node a", hello).ok());
  hello = same;
  hello.set_plugin_abi(hello.plugin_abi() + 1);
  BOOST_TEST(!check_peer("node a", hello).ok());
  hello = same;
  hello.set_version("9.9.9");
  auto checked = check_peer("node a", hello);
  BOOST_REQUIRE(!checked.ok());
  BOOST_TEST(checked.error().to_string().find("node a: runs Troupe 9.9.9") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
