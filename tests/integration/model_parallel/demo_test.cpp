// The demo as `./dev demo` runs it: real images, two workers, four epochs. It takes minutes.

#include <nlohmann/json.hpp>

#include "integration/cluster.hpp"

namespace troupe::test {

BOOST_AUTO_TEST_CASE(the_demo_recognises_nine_in_ten_images) {
  const Cluster cluster;
  Process demo = cluster.run(TROUPE_SOURCE_DIR "/apps/configs/fashion_mnist.textproto", {"--json"});
  const auto line = demo.read_line(std::chrono::minutes(25));
  BOOST_REQUIRE_MESSAGE(line, demo.error_output());
  const auto result = nlohmann::json::parse(*line);
  BOOST_TEST(demo.wait().value_or(-1) == 0, demo.error_output());
  BOOST_TEST(result.at("evaluation_samples") == 10000);
  BOOST_TEST(result.at("accuracy") >= 0.9);
  BOOST_TEST_MESSAGE("accuracy " << result.at("accuracy") << " in " << result.at("wall_seconds")
                                 << " s");
  BOOST_TEST(all_gone(cluster.job_processes()));
}

}  // namespace troupe::test
