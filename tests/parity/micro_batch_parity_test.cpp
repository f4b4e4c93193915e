// Trainings whose batches are cut, against plain PyTorch on the whole batch, in float64: losses
// that count targets, micro-batches of different sizes, one in which nothing counts, steps of
// several batches, the short steps at the ends of epochs, and deferred batch normalisation. The
// nodes are simulated in this process.
#include <google/protobuf/text_format.h>
#include <boost/test/unit_test.hpp>

#include "jobs/closing_report.hpp"
#include "jobs/train_plan.hpp"
#include "parity/parity_case.hpp"
#include "parity/python.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/stage_actor.hpp"
#include "support/process.hpp"

using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

constexpr std::size_t steps = 3;

/// Directory of what micro_batches.py wrote, computed once.
const std::string& directory() {
  static const troupe::test::TemporaryDirectory files;
  static const std::string path = [] {
    run_python("micro_batches.py", {files.path().string()});
    return files.path().string();
  }();
  return path;
}

const SafetensorsFile& expected() {
  static const SafetensorsFile file =
      must(SafetensorsFile::open(directory() + "/expected.safetensors"));
  return file;
}

double expected_number(const std::string& name) {
  return as_doubles(must(expected().tensor(name))).front();
}

std::string data_of(const std::string& name) {
  return "data { tensors { path: \"" + directory() + "/" + name + ".data.safetensors\" } }";
}

/// A job on nodes "a" and "b"; `fields` say how a case differs.
v1::TrainJob job_of(const std::string& name, const std::string& fields) {
  const std::string text = data_of(name) + " evaluation { " + data_of(name) + " batch_size: 4 }" +
                           " init_from: \"" + directory() + "/" + name + ".start.safetensors\"" +
                           " optimizer { sgd { lr: 0.1 momentum: 0.9 } }" +
                           " precision: PRECISION_FLOAT64 steps: " + std::to_string(steps) + " " +
                           fields;
  v1::TrainJob job;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &job));
  return job;
}

const std::string token_model =
    "model { layers {"
    "  layers { name: \"first\" kind: \"linear\" attributes { key: \"in_features\" value: 6 }"
    "           attributes { key: \"out_features\" value: 8 } }"
    "  layers { name: \"middle\" kind: \"tanh\" }"
    "  layers { name: \"second\" kind: \"linear\" attributes { key: \"in_features\" value: 8 }"
    "           attributes { key: \"out_features\" value: 5 } } } }"
    "stages { node: \"a\" threads: 1 }"
    "stages { node: \"b\" threads: 1 first_layer: \"second\" } ";

struct Trained {
  std::vector<StepOutcome> steps;
  std::vector<TensorMap> states;
  EvaluationOutcome evaluation;
};

Trained train(const v1::TrainJob& config) {
  const auto job = troupe::testing::job_with_nodes({"a", "b"});
  auto plan = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::LocalSession session(job, {{stage_factory, libtorch_stages()}});
  DriverOptions options;
  options.schedule = config.schedule();
  options.learning_rates = std::move(plan.learning_rates);
  options.batches_in_step = plan.batches_in_step;
  options.feeds[v1::Key::KIND_TRAIN] = std::move(plan.training);
  options.feeds[v1::Key::KIND_EVAL] = std::move(*plan.evaluation);
  const auto driver = value_of(Driver::start(session, plan.plan, std::move(options)));
  BOOST_REQUIRE(driver->load_state(*plan.weights, true, config.init_from()).ok());
  Trained trained;
  BOOST_REQUIRE_EQUAL(plan.steps, steps);
  for (std::size_t i = 0; i < steps; ++i) {
    trained.steps.push_back(value_of(driver->pipeline().train_step()));
    trained.states.push_back(value_of(driver->pipeline().export_model()));
  }
  trained.evaluation = value_of(driver->pipeline().evaluate());
  return trained;
}

/// Losses, norms, weights and running statistics after each step, and the evaluation at the end.
Trained check(const std::string& name, const v1::TrainJob& config) {
  Trained trained = train(config);
  for (std::size_t i = 0; i < steps; ++i) {
    BOOST_TEST_CONTEXT(name << ", step " << i + 1) {
      const double bound = i == 0 ? 1e-9 : 1e-6;
      const std::string step = std::to_string(i);
      BOOST_TEST(relative_error({trained.steps[i].totals.loss},
                                {expected_number(name + "/loss/" + step)}) <= bound);
      BOOST_TEST(relative_error({trained.steps[i].grad_norm},
                                {expected_number(name + "/norm/" + step)}) <= bound);
      double worst = 0;
      for (const auto& [tensor, value] : trained.states[i]) {
        const auto reference =
            as_doubles(must(expected().tensor(name + "/state/" + step + "/" + tensor)));
        const double error = relative_error(as_doubles(value), reference);
        BOOST_TEST(error <= bound, tensor << ": " << error);
        worst = std::max(worst, error);
      }
      BOOST_TEST_MESSAGE(name << ", step " << i + 1 << ": largest relative error " << worst);
    }
  }
  BOOST_TEST(relative_error({trained.evaluation.totals.loss},
                            {expected_number(name + "/evaluation/loss")}) <= 1e-6);
  return trained;
}

/// Loss, norm and running statistics after one step in float32. Weights of deep networks differ
/// more, also between two runs of PyTorch.
void check_float32(const std::string& name, v1::TrainJob config) {
  config.set_precision(v1::PRECISION_FLOAT32);
  const Trained trained = train(config);
  const auto check_number = [&](const std::string& number, double value) {
    BOOST_TEST(relative_error({value}, {expected_number(name + "/" + number + "/0")}) <= 1e-4,
               number);
  };
  check_number("loss", trained.steps[0].totals.loss);
  check_number("norm", trained.steps[0].grad_norm);
  for (const auto& [tensor, value] : trained.states[0]) {
    if (tensor.find("running_") == std::string::npos) continue;
    const auto reference = as_doubles(must(expected().tensor(name + "/state/0/" + tensor)));
    BOOST_TEST(relative_error(as_doubles(value), reference) <= 1e-4, tensor);
  }
}

void check_accuracy(const std::string& name, const Trained& trained) {
  BOOST_TEST(accuracy(trained.evaluation.totals) == expected_number(name + "/evaluation/accuracy"),
             boost::test_tools::tolerance(1e-12));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(micro_batch_parity)

BOOST_AUTO_TEST_CASE(targets_that_count_weigh_and_not_samples) {
  // Batches of 5, 5 and 1; the second micro-batch has no target that counts.
  const std::string loss = "loss { cross_entropy { label_smoothing: 0.1 } }";
  for (const char* cut : {"micro_batch_size: 2", "micro_batch_size: 3", "micro_batch_size: 5"}) {
    const auto trained =
        check("tokens", job_of("tokens", token_model + loss + " batch_size: 5 " + cut));
    check_accuracy("tokens", trained);
    check_float32("tokens", job_of("tokens", token_model + loss + " batch_size: 5 " + cut));
    BOOST_TEST(trained.evaluation.totals.samples == 11u);
    BOOST_TEST(trained.evaluation.totals.counted < 44u);
  }
}

BOOST_AUTO_TEST_CASE(a_step_of_several_batches_is_one_of_all_their_samples) {
  const std::string more = " batch_size: 5 micro_batch_size: 2 accumulate_batches: 2";
  for (const char* schedule : {" schedule: SCHEDULE_GPIPE", " schedule: SCHEDULE_ONE_F_ONE_B"}) {
    const auto trained = check(
        "accumulated",
        job_of("accumulated",
               token_model + "loss { cross_entropy { label_smoothing: 0.1 } }" + more + schedule));
    check_accuracy("accumulated", trained);
    // The second step has what the first leaves of the epoch.
    BOOST_TEST(trained.steps[0].totals.samples == 10u);
    BOOST_TEST(trained.steps[1].totals.samples == 1u);
    BOOST_TEST(trained.steps[2].totals.samples == 10u);
    check("numbers",
          job_of("numbers", token_model + "loss { huber { delta: 0.5 } }" + more + schedule));
  }
}

BOOST_AUTO_TEST_CASE(deferred_running_statistics_are_those_of_the_whole_step) {
  const auto job = job_of(
      "deferred",
      "model { resnet { depth: 18 num_classes: 10 } } loss { cross_entropy {} }"
      "stages { node: \"a\" threads: 1 }"
      "stages { node: \"b\" threads: 1 first_layer: \"layer3\" }"
      "batch_size: 3 micro_batch_size: 2 accumulate_batches: 2 batch_norm: BATCH_NORM_DEFERRED");
  check("deferred", job);
  check_float32("deferred", job);
}

BOOST_AUTO_TEST_SUITE_END()
