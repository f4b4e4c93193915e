// What jobs are refused for, or worked out to, before anything runs.
#include <limits>

#include <boost/test/unit_test.hpp>

#include "jobs/predict_runner.hpp"
#include "jobs/train_plan.hpp"

using namespace troupe;
using namespace troupe::mp;

namespace {

runtime::v1::Job job_on(const std::vector<std::string>& nodes) {
  runtime::v1::Job job;
  job.set_name("test");
  for (const auto& node : nodes) job.add_nodes()->set_name(node);
  return job;
}

v1::Model two_layers() {
  v1::Model model;
  for (const char* name : {"first", "second"}) {
    auto* layer = model.mutable_layers()->add_layers();
    layer->set_name(name);
    layer->set_kind("linear");
    (*layer->mutable_attributes())["in_features"] = 4;
    (*layer->mutable_attributes())["out_features"] = 4;
  }
  return model;
}

v1::Data numbers(std::uint64_t samples) {
  v1::Data data;
  data.mutable_synthetic()->add_shape(4);
  data.mutable_synthetic()->set_one_hot_classes(4);
  data.mutable_synthetic()->set_samples(samples);
  return data;
}

v1::TrainJob training() {
  v1::TrainJob train;
  *train.mutable_model() = two_layers();
  train.add_stages()->set_node("a");
  train.mutable_loss()->mutable_mse();
  train.mutable_optimizer()->mutable_sgd()->set_lr(0.1);
  *train.mutable_data() = numbers(20);
  train.set_batch_size(8);
  train.set_micro_batch_size(3);
  train.set_epochs(2);
  return train;
}

Result<TrainPlan> plan_of(const v1::TrainJob& train) {
  return make_train_plan(JobFile{job_on({"a"}), nullptr}, train);
}

void expect_refused(const v1::TrainJob& train, const std::string& where, const std::string& what) {
  const auto plan = plan_of(train);
  BOOST_REQUIRE(!plan.ok());
  BOOST_TEST((plan.error().code == ErrorCode::bad_input));
  BOOST_TEST(plan.error().where == where);
  BOOST_TEST(plan.error().what.find(what) != std::string::npos, plan.error().what);
}

}  // namespace

BOOST_AUTO_TEST_CASE(epochs_are_counted_in_batches) {
  const auto plan = plan_of(training());
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(plan->steps == 6u);
  auto train = training();
  train.set_epochs(std::numeric_limits<std::uint64_t>::max() / 2);
  expect_refused(train, "epochs", "too many to count");
}

BOOST_AUTO_TEST_CASE(a_step_of_several_batches_ends_with_its_epoch) {
  auto train = training();  // 3 batches in an epoch, each of 3 micro-batches
  train.set_accumulate_batches(2);
  auto plan = plan_of(train);
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(plan->steps == 4u);
  BOOST_TEST(plan->training.plan.batches == 6u);
  BOOST_TEST(plan->batches_in_step == 2u);
  BOOST_TEST(plan->micro_batches == 6u);
  train.set_steps(3);
  plan = plan_of(train);
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(plan->steps == 3u);
  BOOST_TEST(plan->training.plan.batches == 5u);
  train.set_steps(std::numeric_limits<std::uint64_t>::max());
  expect_refused(train, "steps", "too many to count");
}

BOOST_AUTO_TEST_CASE(schedules_of_epochs_count_the_steps_that_an_epoch_has) {
  auto train = training();
  train.set_accumulate_batches(2);
  auto* schedule = train.mutable_optimizer()->mutable_schedule();
  schedule->set_unit(v1::LearningRateSchedule::UNIT_EPOCHS);
  schedule->mutable_step()->set_every(1);
  const auto plan = plan_of(train);
  BOOST_REQUIRE(plan.ok());
  const auto& rate = plan->learning_rates.front();
  BOOST_TEST(rate.at(1) == rate.at(2));
  BOOST_TEST(rate.at(3) < rate.at(2));
  BOOST_TEST(rate.at(3) == rate.at(4));
}

BOOST_AUTO_TEST_CASE(more_micro_batches_in_a_step_than_can_be_counted_are_refused) {
  auto train = training();
  train.set_batch_size(1 << 20);
  train.set_micro_batch_size(1);
  train.set_accumulate_batches(1 << 20);
  expect_refused(train, "accumulate_batches", "too many to count");
}

BOOST_AUTO_TEST_CASE(every_stage_is_told_how_to_keep_statistics) {
  auto train = training();
  train.add_stages()->set_node("a");
  train.mutable_stages(1)->set_first_layer("second");
  const auto usual = plan_of(train);
  train.set_batch_norm(v1::BATCH_NORM_DEFERRED);
  const auto deferred = plan_of(train);
  BOOST_REQUIRE((usual.ok() && deferred.ok()));
  for (const int stage : {0, 1}) {
    BOOST_TEST(usual->plan.stages[stage].config.batch_norm() == v1::BATCH_NORM_PER_MICRO_BATCH);
    BOOST_TEST(deferred->plan.stages[stage].config.batch_norm() == v1::BATCH_NORM_DEFERRED);
  }
}

BOOST_AUTO_TEST_CASE(targets_that_do_not_suit_the_loss_are_refused_with_their_place) {
  auto train = training();
  train.mutable_loss()->mutable_cross_entropy();
  expect_refused(train, "data.synthetic.one_hot_classes", "cross-entropy");
  train.mutable_data()->mutable_synthetic()->set_classes(4);
  BOOST_TEST(plan_of(train).ok());
  train.mutable_loss()->mutable_l1();
  expect_refused(train, "data.synthetic.classes", "mean absolute error");
  train.mutable_loss()->mutable_huber();
  expect_refused(train, "data.synthetic.classes", "Huber's loss");
  train.mutable_loss()->mutable_bce_with_logits();
  expect_refused(train, "data.synthetic.classes", "binary cross-entropy");
}

BOOST_AUTO_TEST_CASE(an_evaluation_runs_a_micro_batch_at_once_unless_it_says_otherwise) {
  auto train = training();
  *train.mutable_evaluation()->mutable_data() = numbers(20);
  const auto usual = plan_of(train);
  BOOST_REQUIRE(usual.ok());
  BOOST_TEST(usual->evaluation->plan.batch_size == 3u);
  BOOST_TEST(usual->evaluation->micro_batch_size == 3u);
  train.mutable_evaluation()->set_batch_size(10);
  const auto larger = plan_of(train);
  BOOST_REQUIRE(larger.ok());
  BOOST_TEST(larger->evaluation->micro_batch_size == 10u);
}

BOOST_AUTO_TEST_CASE(a_training_is_refused_for_its_optimizer_and_its_fields) {
  auto no_rate = training();
  no_rate.mutable_optimizer()->mutable_sgd()->clear_lr();
  expect_refused(no_rate, "optimizer.sgd.lr", "lr is missing");
  auto clip = training();
  clip.set_clip_grad_norm(std::numeric_limits<double>::infinity());
  expect_refused(clip, "clip_grad_norm", "clip_grad_norm is inf");
  auto masked = training();
  auto* second = masked.mutable_model()->mutable_layers()->mutable_layers(1);
  second->add_reads()->set_layer("first");
  second->add_reads()->set_field("mask");
  expect_refused(masked, "model.layers.layers[1]", "reads field \"mask\"");
  auto wrong_read = training();
  wrong_read.mutable_model()->mutable_layers()->mutable_layers(1)->add_reads()->set_layer("x");
  expect_refused(wrong_read, "model.layers.layers[1].reads[0].layer", "not an earlier layer");
}

BOOST_AUTO_TEST_CASE(the_output_of_a_prediction_is_a_file_name_of_its_own) {
  const auto check = [](const std::string& output) {
    v1::PredictJob predict;
    *predict.mutable_model() = two_layers();
    predict.add_stages()->set_node("a");
    *predict.mutable_data() = numbers(20);
    predict.set_batch_size(8);
    predict.set_micro_batch_size(3);
    predict.set_output(output);
    auto job = job_on({"a"});
    job.mutable_plugin()->PackFrom(predict);
    return std::move(make_predict_runner(job, nullptr)).value()->check();
  };
  BOOST_TEST(check("").ok());
  BOOST_TEST(check("mine.safetensors").ok());
  for (const char* output : {".", "..", "a/b", "/b", "run.json", "events.jsonl"}) {
    const auto refused = check(output);
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST(refused.error().where == "output", output);
  }
}

BOOST_AUTO_TEST_CASE(workers_are_told_their_threads_where_they_are_known) {
  auto job = job_on({"here", "there"});
  job.mutable_nodes(1)->set_address("there:1");
  auto train = training();
  train.clear_stages();
  const auto add = [&](const std::string& node, std::uint32_t threads, const std::string& device) {
    auto* stage = train.add_stages();
    stage->set_node(node);
    stage->set_threads(threads);
    stage->set_device(device);
  };
  const auto environment = [&](const std::string& node) {
    return worker_requirements(job, train.stages(), node).environment;
  };
  add("here", 1000, "cpu");
  add("here", 1001, "cpu");
  add("there", 2, "cuda:0");
  BOOST_TEST(environment("here").at("OMP_NUM_THREADS") == "1001");
  BOOST_TEST(environment("here").count("CUBLAS_WORKSPACE_CONFIG") == 0u);
  BOOST_TEST(environment("there").at("OMP_NUM_THREADS") == "2");
  BOOST_TEST(environment("there").at("CUBLAS_WORKSPACE_CONFIG") == ":4096:8");
  add("there", 0, "cpu");  // the node says how many cores it has
  BOOST_TEST(environment("there").count("OMP_NUM_THREADS") == 0u);
}
