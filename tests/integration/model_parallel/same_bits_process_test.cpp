// The weights file that the real binary leaves is the same, byte for byte, whatever the number of
// stages and processes, the schedule and the speed of the stages.

#include "integration/cluster.hpp"
#include "job_text.hpp"

namespace troupe::test {
namespace {

JobText resnet_job(const std::vector<StageText>& stages, const std::string& schedule = "GPIPE") {
  JobText job;
  job.model = small_resnet();
  job.stages = stages;
  job.optimizer = "optimizer { sgd { lr: 0.1 momentum: 0.9 } } clip_grad_norm: 0.5";
  job.more = "schedule: SCHEDULE_" + schedule;
  return job;
}

std::string weights_of(const JobText& job) {
  Cluster cluster;
  const auto outcome = outcome_of(cluster.run(cluster.files().write("job.textproto", job.text())));
  BOOST_TEST(outcome.code == 0, outcome.error);
  const std::string weights = read_text(cluster.out() + "/weights.safetensors");
  BOOST_TEST(!weights.empty());
  return weights;
}

const std::string& reference() {
  static const std::string weights = weights_of(resnet_job({{"a", "", ""}}));
  return weights;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(same_bits_in_processes)

BOOST_AUTO_TEST_CASE(training_changes_the_weights) {
  JobText job = resnet_job({{"a", "", ""}});
  job.optimizer = "optimizer { sgd { lr: 0 } }";
  BOOST_TEST((weights_of(job) != reference()));
}

BOOST_AUTO_TEST_CASE(two_processes) {
  for (const char* schedule : {"GPIPE", "ONE_F_ONE_B"})
    BOOST_TEST(
        (weights_of(resnet_job({{"a", "", ""}, {"b", "layer3", ""}}, schedule)) == reference()),
        schedule);
}

BOOST_AUTO_TEST_CASE(several_stages_in_a_process) {
  BOOST_TEST((weights_of(resnet_job({{"a", "", ""}, {"a", "layer2", ""}, {"a", "fc", ""}},
                                    "ONE_F_ONE_B")) == reference()));
}

BOOST_AUTO_TEST_CASE(stages_in_turn_on_two_processes_with_one_delayed) {
  for (const char* schedule : {"GPIPE", "ONE_F_ONE_B"})
    BOOST_TEST((weights_of(resnet_job({{"a", "", ""},
                                       {"b", "layer1.1", "slow_down_seconds: 0.01"},
                                       {"a", "layer3", ""},
                                       {"b", "layer4.1", ""}},
                                      schedule)) == reference()),
               schedule);
}

BOOST_AUTO_TEST_CASE(recomputed_stages) {
  JobText job = resnet_job({{"a", "", "recompute: true"}, {"b", "layer3", ""}});
  job.more += " recompute { layers: \"layer4.*\" }";
  BOOST_TEST((weights_of(job) == reference()));
}

BOOST_AUTO_TEST_CASE(bfloat16_and_wire_types) {
  const auto train = [](const std::vector<StageText>& stages, const std::string& more) {
    JobText job = resnet_job(stages);
    job.more += " " + more;
    return weights_of(job);
  };
  const std::vector<StageText> one{{"a", "", ""}};
  const std::vector<StageText> two{{"a", "", ""}, {"b", "layer2.1", ""}};
  for (const std::string more :
       {"precision: PRECISION_BFLOAT16", "wire { layers: \"layer2.*\" dtype: DTYPE_BFLOAT16 }"}) {
    const auto whole = train(one, more);
    BOOST_TEST((whole != reference()), more);
    BOOST_TEST((train(two, more) == whole), more);
  }
}

BOOST_AUTO_TEST_CASE(every_stage_delayed_by_another_time) {
  const auto delayed = [](const std::vector<std::string>& seconds) {
    const std::vector<std::string> first_layers = {"", "layer2", "layer4"};
    std::vector<StageText> stages;
    for (std::size_t i = 0; i < first_layers.size(); ++i)
      stages.push_back({std::string(1, static_cast<char>('a' + i)), first_layers[i],
                        "slow_down_seconds: " + seconds[i]});
    return weights_of(resnet_job(stages, "ONE_F_ONE_B"));
  };
  BOOST_TEST((delayed({"0.03", "0.001", "0.01"}) == reference()));
  BOOST_TEST((delayed({"0.001", "0.02", "0.005"}) == reference()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
