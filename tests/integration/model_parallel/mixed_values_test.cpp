// Values of every type that may cross a stage boundary (floating-point, int64, bool, absent), and
// gradients that do not exist, between real stage actors with LibTorch's executors. The nodes are
// simulated in this process.

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "jobs/train_plan.hpp"
#include "simulation/model_parallel/scenario.hpp"
#include "support/libtorch/mixed_values.hpp"
#include "support/libtorch/stage_actor.hpp"

namespace troupe::mp::test {
namespace {

using First = std::vector<std::string>;  // the first layer of each stage but the first

void add_layer(v1::Model& model, const std::string& name, const std::string& kind,
               std::uint32_t outputs = 1) {
  auto* layer = model.mutable_layers()->add_layers();
  layer->set_name(name);
  layer->set_kind(kind);
  layer->set_outputs(outputs);
}

void add_linear(v1::Model& model, const std::string& name, int inputs, int outputs) {
  add_layer(model, name, "linear");
  auto& attributes = *model.mutable_layers()->mutable_layers()->rbegin()->mutable_attributes();
  attributes["in_features"] = inputs;
  attributes["out_features"] = outputs;
}

/// Four values pass from "spread" over "pass" to "gather".
v1::Model mixed_values() {
  v1::Model model;
  add_linear(model, "first", 4, 3);
  add_layer(model, "spread", "test.spread", 4);
  add_layer(model, "pass", "identity", 4);
  add_layer(model, "gather", "test.gather");
  add_linear(model, "last", 3, 2);
  return model;
}

/// No gradient reaches "first".
v1::Model interrupted_gradient() {
  v1::Model model;
  add_linear(model, "first", 4, 3);
  add_layer(model, "interrupt", "test.constant");
  add_linear(model, "last", 3, 2);
  return model;
}

TrainingOutcome run(const v1::Model& model, const First& cut, std::size_t nodes,
                    v1::Schedule schedule = v1::SCHEDULE_ONE_F_ONE_B) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i) names.push_back("node" + std::to_string(i));
  v1::TrainJob config;
  *config.mutable_model() = model;
  for (std::size_t i = 0; i <= cut.size(); ++i) {
    auto* stage = config.add_stages();
    stage->set_node(names[i % nodes]);
    stage->set_threads(1);
    if (i != 0) stage->set_first_layer(cut[i - 1]);
  }
  config.mutable_loss()->mutable_mse();
  config.mutable_optimizer()->mutable_sgd()->set_lr(0.05);
  auto* data = config.mutable_data()->mutable_synthetic();
  data->add_shape(4);
  data->set_one_hot_classes(2);
  config.set_batch_size(7);
  config.set_micro_batch_size(2);
  config.set_steps(3);
  config.set_schedule(schedule);

  auto job = troupe::testing::job_with_nodes(names);
  job.set_seed(3);
  auto plan = value_of(make_train_plan(JobFile{job, nullptr}, config));
  troupe::testing::SimulationOptions simulation;
  simulation.seed = 10 * cut.size() + nodes;
  troupe::testing::LocalSession session(
      job, {{stage_factory, libtorch_stages(mixed_value_kinds())}}, simulation);
  DriverOptions options;
  options.schedule = schedule;
  options.learning_rates = std::move(plan.learning_rates);
  options.feeds[v1::Key::KIND_TRAIN] = std::move(plan.training);
  const auto driver = value_of(Driver::start(session, plan.plan, std::move(options)));
  TrainingOutcome outcome;
  outcome.initial = value_of(driver->pipeline().export_model());
  for (std::uint64_t i = 0; i < config.steps(); ++i)
    outcome.steps.push_back(value_of(driver->pipeline().train_step()));
  outcome.state = value_of(driver->pipeline().export_model());
  return outcome;
}

bool is_unchanged(const TrainingOutcome& outcome, const std::string& tensor) {
  return same_state({{"", outcome.state.at(tensor)}}, {{"", outcome.initial.at(tensor)}});
}

void expect_same_bits(const v1::Model& model, const TrainingOutcome& reference, const First& cut) {
  for (const std::size_t nodes : {1, 3})
    for (const auto schedule : {v1::SCHEDULE_GPIPE, v1::SCHEDULE_ONE_F_ONE_B})
      BOOST_TEST_CONTEXT("first cut before " << cut.front() << ", " << nodes << " nodes, schedule "
                                             << schedule) {
        const auto outcome = run(model, cut, nodes, schedule);
        BOOST_TEST(same_state(outcome.initial, reference.initial));
        BOOST_TEST(same_state(outcome.state, reference.state));
        for (std::size_t i = 0; i < outcome.steps.size(); ++i) {
          BOOST_TEST(outcome.steps[i].totals.loss == reference.steps[i].totals.loss);
          BOOST_TEST(outcome.steps[i].grad_norm == reference.steps[i].grad_norm);
        }
      }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mixed_value_pipelines)

BOOST_AUTO_TEST_CASE(values_of_all_types_pass_through_three_stages) {
  const auto model = mixed_values();
  const auto reference = run(model, {}, 1);
  for (const auto& [name, tensor] : reference.state)
    BOOST_TEST(!is_unchanged(reference, name), name);
  expect_same_bits(model, reference, {"pass", "gather"});
  expect_same_bits(model, reference, {"spread", "last"});
}

BOOST_AUTO_TEST_CASE(a_stage_whose_output_gets_no_gradient_keeps_its_weights) {
  const auto model = interrupted_gradient();
  const auto reference = run(model, {}, 1);
  for (const char* name : {"first.weight", "first.bias"})
    BOOST_TEST(is_unchanged(reference, name), name);
  for (const char* name : {"last.weight", "last.bias"})
    BOOST_TEST(!is_unchanged(reference, name), name);
  expect_same_bits(model, reference, {"interrupt", "last"});
  expect_same_bits(model, reference, {"last", "loss"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp::test
