#include "core/numerics.hpp"

#include <boost/test/unit_test.hpp>

#include "core/thread_share.hpp"

using namespace troupe;
using namespace troupe::mp;

namespace {

StageNumerics stage(std::uint32_t number, const std::string& node, const std::string& device) {
  StageNumerics stage{number, node, device, {}};
  stage.fingerprint.set_cpu_model("fast");
  stage.fingerprint.set_instruction_set("avx2");
  stage.fingerprint.set_blas_kernel("Haswell");
  stage.fingerprint.set_libraries("LibTorch 1");
  return stage;
}

runtime::v1::NodeInfo node(const std::string& name, const std::string& host,
                           std::uint32_t threads) {
  runtime::v1::NodeInfo info;
  info.set_name(name);
  info.set_host_name(host);
  info.mutable_fingerprint()->set_threads(threads);
  return info;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_differing_property_is_named_with_values_and_nodes) {
  std::vector<StageNumerics> stages{stage(0, "a", "cpu"), stage(1, "b", "cpu"),
                                    stage(2, "c", "cpu"), stage(3, "a", "cpu")};
  BOOST_TEST(numeric_differences(stages).empty());
  stages[2].fingerprint.set_cpu_model("slow");
  stages[1].fingerprint.set_blas_kernel("Zen");
  BOOST_TEST(numeric_differences(stages) ==
             "CPU model is \"fast\" on a and b, \"slow\" on c, "
             "BLAS kernel is \"Haswell\" on a and c, \"Zen\" on b");
}

BOOST_AUTO_TEST_CASE(what_the_job_declares_is_no_difference) {
  std::vector<StageNumerics> stages{stage(0, "a", "cpu"), stage(1, "b", "cuda:0"),
                                    stage(2, "b", "cuda:1")};
  stages[0].fingerprint.set_threads(1);
  stages[1].fingerprint.set_threads(8);
  stages[1].fingerprint.set_device("cuda:0");
  for (const std::size_t i : {1, 2}) stages[i].fingerprint.set_cpu_model("another");
  BOOST_TEST(numeric_differences(stages).empty());
  stages[2].fingerprint.set_libraries("LibTorch 2");
  BOOST_TEST(numeric_differences(stages) ==
             "libraries is \"LibTorch 1\" on b, \"LibTorch 2\" on b");
}

BOOST_AUTO_TEST_CASE(the_node_tells_of_the_machine_and_the_executor_of_the_rest) {
  runtime::v1::NumericFingerprint of_node;
  of_node.set_cpu_model("fast");
  of_node.set_instruction_set("avx2");
  of_node.set_blas_kernel("wanted");
  of_node.set_threads(16);
  runtime::v1::NumericFingerprint of_executor;
  of_executor.set_blas_kernel("loaded");
  of_executor.set_threads(2);
  const auto merged = merge(of_node, of_executor);
  BOOST_TEST(merged.cpu_model() == "fast");
  BOOST_TEST(merged.instruction_set() == "avx2");
  BOOST_TEST(merged.blas_kernel() == "loaded");
  BOOST_TEST(merged.threads() == 2u);
}

BOOST_AUTO_TEST_CASE(a_machine_is_shared_out_among_the_nodes_on_it) {
  runtime::v1::Job job;
  for (const char* name : {"here1", "here2", "there", "alone"}) job.add_nodes()->set_name(name);
  job.mutable_nodes(2)->set_address("there:1");
  job.mutable_nodes(3)->set_address("alone:1");
  const auto shares = thread_shares(
      job,
      {node("here1", "x", 3), node("here2", "x", 3), node("there", "y", 6), node("alone", "z", 0)},
      9);
  BOOST_TEST(shares.at("here1") == 4u);
  BOOST_TEST(shares.at("here2") == 4u);
  BOOST_TEST(shares.at("there") == 6u);
  BOOST_TEST(shares.at("alone") == 1u);
}
