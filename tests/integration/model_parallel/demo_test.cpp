// The demos as `./dev demo` and `./dev demo gpt` run them, on real images and real text. They take
// minutes.

#include <string>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"

namespace troupe::test {
namespace {

const std::string configs = TROUPE_SOURCE_DIR "/apps/configs/";
constexpr std::chrono::minutes patience{25};

}  // namespace

BOOST_AUTO_TEST_CASE(the_demo_recognises_nine_in_ten_images) {
  const Cluster cluster;
  const auto result =
      result_of(cluster.run(configs + "fashion_mnist.textproto", {"--json"}), patience);
  BOOST_TEST(result.at("evaluation_samples") == 10000);
  BOOST_TEST(result.at("accuracy") >= 0.9);
  BOOST_TEST_MESSAGE("accuracy " << result.at("accuracy") << " in " << result.at("wall_seconds")
                                 << " s");
  BOOST_TEST(all_gone(cluster.job_processes()));
}

BOOST_AUTO_TEST_CASE(the_gpt_demo_knows_more_than_how_frequent_bytes_are) {
  const Cluster training;
  const auto result = result_of(training.run(configs + "gpt_text.textproto", {"--json"}), patience);
  const double loss = result.at("evaluation_loss");
  const double frequencies = result.at("frequency_loss");
  BOOST_TEST(frequencies > 2.5);
  BOOST_TEST(loss < frequencies - 0.8);
  BOOST_TEST_MESSAGE("loss " << loss << ", of frequencies " << frequencies << ", in "
                             << result.at("wall_seconds") << " s");

  const Cluster writing;
  const auto written = result_of(
      writing.run(
          configs + "gpt_generate.textproto",
          {"--json", "--set", "plugin.init_from=" + training.out() + "/weights.safetensors"}),
      patience);
  BOOST_TEST(written.at("tokens") == 400);
  BOOST_TEST_MESSAGE(written.at("text").get<std::string>());
}

}  // namespace troupe::test
