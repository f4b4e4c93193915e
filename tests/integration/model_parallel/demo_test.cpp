// The demos as `./dev demo` and `./dev demo gpt` run them, on real images and real text. They take
// minutes.

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

BOOST_AUTO_TEST_CASE(the_gpt_demo_knows_more_than_how_frequent_bytes_are) {
  const Cluster training;
  Process train = training.run(TROUPE_SOURCE_DIR "/apps/configs/gpt_text.textproto", {"--json"});
  const auto line = train.read_line(std::chrono::minutes(25));
  BOOST_REQUIRE_MESSAGE(line, train.error_output());
  const auto result = nlohmann::json::parse(*line);
  BOOST_TEST(train.wait().value_or(-1) == 0, train.error_output());
  const double loss = result.at("evaluation_loss");
  const double frequencies = result.at("frequency_loss");
  BOOST_TEST(frequencies > 2.5);
  BOOST_TEST(loss < frequencies - 0.8);
  BOOST_TEST_MESSAGE("loss " << loss << ", of frequencies " << frequencies << ", in "
                             << result.at("wall_seconds") << " s");

  const Cluster writing;
  Process generate = writing.run(
      TROUPE_SOURCE_DIR "/apps/configs/gpt_generate.textproto",
      {"--json", "--set", "plugin.init_from=" + training.out() + "/weights.safetensors"});
  const auto text = generate.read_line(std::chrono::minutes(5));
  BOOST_REQUIRE_MESSAGE(text, generate.error_output());
  BOOST_TEST(generate.wait().value_or(-1) == 0, generate.error_output());
  BOOST_TEST(nlohmann::json::parse(*text).at("tokens") == 400);
  BOOST_TEST_MESSAGE(nlohmann::json::parse(*text).at("text").get<std::string>());
}

}  // namespace troupe::test
