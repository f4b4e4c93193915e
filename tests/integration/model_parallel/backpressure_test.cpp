// A last stage that is 20 times slower than the rest: what waits for it stays within the budgets,
// and no process grows. Counters are read with `troupe status` from workers of launchers.

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "integration/cluster.hpp"
#include "integration/job_result.hpp"
#include "job_text.hpp"

namespace troupe::test {
namespace {

/// From /proc/PID/status, in KiB.
long resident_kib(pid_t pid) {
  const std::string status = read_text("/proc/" + std::to_string(pid) + "/status");
  const auto place = status.find("VmRSS:");
  return place == std::string::npos ? 0 : std::stol(status.substr(place + 6));
}

std::size_t steps_done(const std::string& directory) {
  const std::string metrics = read_text(directory + "/metrics.jsonl");
  return static_cast<std::size_t>(std::count(metrics.begin(), metrics.end(), '\n'));
}

/// Waits until the job has done this many steps; false when it does not get there in time.
bool reaches(std::size_t steps, const std::string& directory) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (steps_done(directory) < steps) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

/// What `troupe status --json` says of a link.
struct LinkStatus {
  std::string peer;
  std::string traffic;
  std::uint64_t peak_in_flight = 0;
  std::uint64_t chunk_budget = 0;
  std::uint64_t peak_held = 0;
};

nlohmann::json status_of(const std::string& address) {
  return result_of(start_troupe({"status", "--json", address}));
}

std::vector<LinkStatus> links_of_worker(const std::string& launcher) {
  const auto outer = status_of(launcher);
  BOOST_REQUIRE_EQUAL(outer.at("workers").size(), 1u);
  const auto worker = status_of(outer.at("workers")[0].at("address"));
  std::vector<LinkStatus> links;
  for (const auto& link : worker.at("links"))
    links.push_back({link.at("peer"), link.at("class"), link.at("peak_bytes_in_flight"),
                     link.at("chunk_budget_bytes"), link.at("peak_admission_bytes")});
  return links;
}

/// Twenty times what the stages of these jobs compute, and more.
const std::string slow_down = "0.05";

/// Two layers on the device "fake" whose activations have this many float32 elements a sample.
JobText wide_job(std::uint64_t elements) {
  JobText job;
  job.device = "fake";
  const std::string size = std::to_string(elements);
  job.model =
      "layers { layers { name: \"wide\" kind: \"x\" "
      "attributes { key: \"output_elements\" value: " +
      size +
      " } parameters { name: \"wide.w\" shape: [4] init { normal_std: 1 } } } "
      "layers { name: \"last\" kind: \"x\" attributes { key: \"output_elements\" value: 10 } } }";
  job.stages = {{"a", "", ""}, {"b", "last", "slow_down_seconds: " + slow_down}};
  job.data = "data { synthetic { shape: [4] classes: 10 } }";
  job.more = "schedule: SCHEDULE_GPIPE";
  return job;
}

constexpr std::uint64_t mebibyte = 1 << 20;

/// The links of both workers.
struct JobLinks {
  std::vector<LinkStatus> of_a, of_b;
};

/// Runs the job on two launchers; the links of its workers after `steps` steps.
JobLinks links_after(JobText job, std::size_t steps) {
  Cluster cluster;
  std::string first, second;
  Process one = cluster.start_launcher("one", first);
  Process two = cluster.start_launcher("two", second);
  job.addresses = {first, second};
  job.length = "steps: 1000000";
  Process run = cluster.run(cluster.files().write("job.textproto", job.text()));
  BOOST_REQUIRE_MESSAGE(reaches(steps, cluster.out()), run.error_output());
  JobLinks links{links_of_worker(first), links_of_worker(second)};
  run.signal(SIGINT);
  BOOST_TEST(run.wait().value_or(-1) == 130, run.error_output());
  return links;
}

const LinkStatus& link_to(const std::vector<LinkStatus>& links, const std::string& peer,
                          const std::string& traffic) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const LinkStatus& link) {
    return link.peer == peer && link.traffic == traffic;
  });
  BOOST_REQUIRE_MESSAGE(found != links.end(), "no link to " << peer << ", class " << traffic);
  return *found;
}

/// Every link of both workers within the budgets, to the byte; those that the job needs must be
/// among them.
void expect_within(const JobLinks& links, std::uint64_t chunk_budget,
                   std::uint64_t admission_bound) {
  link_to(links.of_a, "b", "activation");
  link_to(links.of_b, "a", "gradient");
  for (const auto* all : {&links.of_a, &links.of_b})
    for (const LinkStatus& link : *all)
      BOOST_TEST_CONTEXT("link to " << link.peer << ", class " << link.traffic) {
        BOOST_TEST(link.chunk_budget == chunk_budget);
        BOOST_TEST(link.peak_in_flight <= chunk_budget);
        BOOST_TEST(link.peak_held <= admission_bound);
      }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(backpressure)

BOOST_AUTO_TEST_CASE(the_last_stage_of_these_jobs_is_twenty_times_slower) {
  JobText job = wide_job(65536);
  job.batches = "batch_size: 16 micro_batch_size: 2";
  job.length = "steps: 3";
  const Cluster cluster;
  Process run = cluster.run(cluster.files().write("job.textproto", job.text()), {"--json"});
  const auto line = run.read_line();
  BOOST_REQUIRE_MESSAGE(line, run.error_output());
  const auto stages = nlohmann::json::parse(*line).at("stages");
  BOOST_REQUIRE_EQUAL(stages.size(), 2u);
  const double first = stages[0].at("compute_seconds");
  const double last = stages[1].at("compute_seconds");
  BOOST_TEST(first > 0);
  BOOST_TEST(last >= 20 * first);
  BOOST_TEST(run.wait().value_or(-1) == 0, run.error_output());
}

BOOST_AUTO_TEST_CASE(what_is_on_a_link_and_held_behind_it_stays_within_the_budgets) {
  // 16 micro-batches of 0.5 MiB could be sent before the first is computed.
  JobText job = wide_job(65536);
  job.batches = "batch_size: 32 micro_batch_size: 2";
  job.job_fields = "links { chunk_budget_bytes: 1048576 admission_budget_bytes: 2097152 }";
  const auto links = links_after(job, 5);
  expect_within(links, mebibyte, 2 * mebibyte);
  const auto& link = link_to(links.of_a, "b", "activation");
  // And they are used.
  BOOST_TEST(link.peak_in_flight > mebibyte / 4);
  BOOST_TEST(link.peak_held > mebibyte);
}

BOOST_AUTO_TEST_CASE(messages_larger_than_the_budgets_pass_one_by_one) {
  // Micro-batches of 4 MiB, from the first message on.
  JobText job = wide_job(524288);
  job.batches = "batch_size: 6 micro_batch_size: 2";
  job.job_fields = "links { chunk_budget_bytes: 1048576 admission_budget_bytes: 1048576 }";
  const auto links = links_after(job, 2);
  expect_within(links, mebibyte, 4 * mebibyte);  // one micro-batch is always admitted
  const auto& link = link_to(links.of_a, "b", "activation");
  BOOST_TEST(link.peak_held == 4 * mebibyte);
}

BOOST_AUTO_TEST_CASE(memory_is_flat) {
  JobText job;
  job.model = perceptron({64, 128, 128, 10});
  job.data = "data { synthetic { shape: [64] classes: 10 } }";
  job.stages = {{"a", "", ""}, {"b", "linear1", ""}, {"c", "linear2", "slow_down_seconds: 0.002"}};
  job.batches = "batch_size: 16 micro_batch_size: 4";
  job.optimizer = "optimizer { sgd { lr: 0.01 momentum: 0.9 } }";
  // Below two micro-batches of 4 x 128 numbers, so that each waits for the one before.
  job.job_fields = "seed: 5 links { admission_budget_bytes: 3000 }";
  job.length = "steps: 100000";
  Cluster cluster;
  Process run = cluster.run(cluster.files().write("job.textproto", job.text()));
  BOOST_REQUIRE_MESSAGE(reaches(50, cluster.out()), run.error_output());
  auto processes = children_of(run.pid());
  BOOST_TEST(processes.size() == 3u);
  processes.push_back(run.pid());
  std::vector<long> before;
  for (const pid_t process : processes) before.push_back(resident_kib(process));
  BOOST_REQUIRE_MESSAGE(reaches(500, cluster.out()), run.error_output());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const long after = resident_kib(processes[i]);
    BOOST_TEST_MESSAGE("process " << i << ": " << before[i] << " KiB, then " << after);
    BOOST_TEST(after < 1.03 * static_cast<double>(before[i]));
  }
  run.signal(SIGINT);
  BOOST_TEST(run.wait().value_or(-1) == 130);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::test
