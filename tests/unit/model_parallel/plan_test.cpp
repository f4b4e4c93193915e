#include "core/plan.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::mp;

namespace {

v1::Layer layer(const std::string& name, std::uint32_t outputs = 1) {
  v1::Layer result;
  result.set_name(name);
  result.set_kind("identity");
  result.set_outputs(outputs);
  auto* weight = result.add_parameters();
  weight->set_name(name + ".weight");
  weight->add_shape(10);
  weight->add_shape(3);
  return result;
}

void reads(v1::Layer& reader, const std::string& producer, std::uint32_t slot = 0) {
  auto* read = reader.add_reads();
  read->set_layer(producer);
  read->set_slot(slot);
}

void reads_field(v1::Layer& reader, const std::string& field) {
  reader.add_reads()->set_field(field);
}

v1::Stage stage(const std::string& node, const std::string& first_layer = {}) {
  v1::Stage result;
  result.set_node(node);
  result.set_first_layer(first_layer);
  return result;
}

PlanRequest request() {
  PlanRequest result;
  result.job = "job";
  result.seed = 7;
  for (const char* name : {"stem", "layer1.0", "layer1.1", "layer3.0", "layer3.1", "fc"})
    result.layers.push_back(layer(name));
  result.stages = {stage("master"), stage("worker", "layer3")};
  result.nodes = {"master", "worker"};
  result.loss.emplace().mutable_mse();
  result.optimizer.emplace().mutable_sgd()->set_momentum(0.9);
  result.locate = [](const std::string& path) { return "at " + path; };
  return result;
}

void check_error(const PlanRequest& request, const std::string& where, const std::string& text) {
  const auto plan = make_plan(request);
  BOOST_REQUIRE(!plan.ok());
  BOOST_TEST(exit_code(plan.error().code) == 2);
  BOOST_TEST(plan.error().where == where);
  BOOST_TEST(plan.error().to_string().find(text) != std::string::npos,
             plan.error().to_string() << " does not contain: " << text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_group_prefix_begins_a_stage_and_the_loss_ends_the_last) {
  const auto plan = make_plan(request());
  BOOST_REQUIRE(plan.ok());
  BOOST_REQUIRE(plan->stages.size() == 2u);
  const auto& first = plan->stages[0].config;
  const auto& second = plan->stages[1].config;
  BOOST_TEST(first.layers_size() == 3);
  BOOST_TEST(second.layers_size() == 4);
  BOOST_TEST(second.layers(0).name() == "layer3.0");
  BOOST_TEST(second.layers(3).name() == "loss");
  BOOST_TEST(second.layers(3).kind() == "loss.mse");
  BOOST_TEST(second.has_loss());
  BOOST_TEST(!first.has_loss());
  BOOST_TEST(second.first_parameter() == 3u);
  BOOST_TEST(plan->stages[0].parameters == 90u);
  BOOST_TEST(plan->stages[0].weight_bytes == 360u);
  BOOST_TEST(plan->stages[0].training_bytes == 3 * 360u);
  BOOST_TEST(to_string(plan->stages[1].address) == "worker/stage.1");
  BOOST_TEST(plan->parameters.size() == 6u);
}

BOOST_AUTO_TEST_CASE(values_and_fields_are_routed) {
  const auto plan = make_plan(request());
  BOOST_REQUIRE(plan.ok());
  const auto& first = plan->stages[0].config;
  const auto& second = plan->stages[1].config;
  BOOST_REQUIRE(first.inbound_size() == 1);
  BOOST_TEST(first.inbound(0).value().field() == "inputs");
  BOOST_TEST(!first.inbound(0).has_producer());
  BOOST_REQUIRE(first.outbound_size() == 1);
  BOOST_TEST(first.outbound(0).value().layer() == "layer1.1");
  BOOST_REQUIRE(first.outbound(0).readers_size() == 1);
  BOOST_TEST(first.outbound(0).readers(0).actor() == "stage.1");
  BOOST_REQUIRE(second.inbound_size() == 2);
  BOOST_TEST(second.inbound(0).producer().actor() == "stage.0");
  BOOST_TEST(second.inbound(1).value().field() == "targets");
  BOOST_TEST(second.outbound_size() == 0);
  BOOST_REQUIRE(plan->fields.at("inputs").size() == 1u);
  BOOST_TEST(to_string(plan->fields.at("inputs")[0]) == "master/stage.0");
  BOOST_TEST(to_string(plan->fields.at("targets")[0]) == "worker/stage.1");
}

BOOST_AUTO_TEST_CASE(without_a_loss_the_outputs_go_to_the_driver) {
  auto without = request();
  without.loss.reset();
  without.train = false;
  const auto plan = make_plan(without);
  BOOST_REQUIRE(plan.ok());
  const auto& last = plan->stages.back().config;
  BOOST_REQUIRE(last.outbound_size() == 1);
  BOOST_TEST(last.outbound(0).value().layer() == "fc");
  BOOST_TEST(last.outbound(0).readers(0).node() == "driver");
  BOOST_TEST(last.outbound(0).readers(0).actor() == "pipeline");
  BOOST_TEST(plan->fields.count("targets") == 0u);
  BOOST_TEST(!plan->loss_stage.has_value());
}

BOOST_AUTO_TEST_CASE(values_may_skip_stages_and_have_several_readers) {
  PlanRequest skip = request();
  skip.layers = {layer("a", 2), layer("b"), layer("c"), layer("d")};
  reads(skip.layers[1], "a", 0);
  reads(skip.layers[2], "b");
  reads(skip.layers[2], "a", 1);
  reads(skip.layers[3], "c");
  reads(skip.layers[3], "a", 1);
  reads_field(skip.layers[3], "mask");
  skip.stages = {stage("master"), stage("worker", "b"), stage("master", "c"), stage("worker", "d")};
  const auto plan = make_plan(skip);
  BOOST_REQUIRE(plan.ok());
  const auto& first = plan->stages[0].config;
  BOOST_REQUIRE(first.outbound_size() == 2);
  BOOST_TEST(first.outbound(0).readers_size() == 1);
  BOOST_TEST(first.outbound(1).value().slot() == 1u);
  BOOST_REQUIRE(first.outbound(1).readers_size() == 2);
  BOOST_TEST(first.outbound(1).readers(0).actor() == "stage.2");
  BOOST_TEST(first.outbound(1).readers(1).actor() == "stage.3");
  BOOST_TEST(plan->stages[3].config.inbound_size() == 4);  // c, a:1, mask, targets
  BOOST_TEST(plan->fields.at("mask").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_value_read_twice_in_a_stage_crosses_once) {
  PlanRequest twice = request();
  twice.layers = {layer("a"), layer("b"), layer("c")};
  reads(twice.layers[2], "b");
  reads(twice.layers[2], "a");
  twice.stages = {stage("master"), stage("worker", "b")};
  const auto plan = make_plan(twice);
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(plan->stages[0].config.outbound(0).readers_size() == 1);
  BOOST_TEST(plan->stages[1].config.inbound_size() == 2);  // a, targets
}

BOOST_AUTO_TEST_CASE(wrong_cuts_are_errors_at_their_field) {
  auto unknown = request();
  unknown.stages[1].set_first_layer("layr3");
  check_error(unknown, "at stages[1].first_layer", "\"layr3\"; names like it are \"layer3\"");

  auto missing = request();
  missing.stages[1].clear_first_layer();
  check_error(missing, "at stages[1].first_layer", "does not say where it begins");

  auto empty = request();
  empty.stages.push_back(stage("master", "layer3.0"));
  check_error(empty, "at stages[2].first_layer", "stage 1 would have no layers");

  auto backwards = request();
  backwards.stages.push_back(stage("master", "layer1"));
  check_error(backwards, "at stages[2].first_layer", "comes before \"layer3.0\"");

  auto late = request();
  late.stages[0].set_first_layer("layer1");
  check_error(late, "at stages[0].first_layer", "cannot begin with \"layer1.0\"");

  auto elsewhere = request();
  elsewhere.stages[1].set_node("wroker");
  check_error(elsewhere, "at stages[1].node", "\"wroker\", which the job does not declare");
}

BOOST_AUTO_TEST_CASE(wrong_reads_are_errors_naming_the_layer) {
  auto forward_read = request();
  reads(forward_read.layers[1], "fc");
  check_error(forward_read, "at model.layers.layers[1]", "layer \"layer1.0\" reads output 0 of");

  auto no_such_slot = request();
  reads(no_such_slot.layers[1], "stem", 1);
  check_error(no_such_slot, "at model.layers.layers[1]", "which has only 1");

  auto duplicate = request();
  duplicate.layers[5].set_name("stem");
  check_error(duplicate, "at model.layers.layers[5]", "two layers are called \"stem\"");
}

BOOST_AUTO_TEST_CASE(the_table_shows_stages_and_bubble) {
  const auto plan = make_plan(request());
  BOOST_REQUIRE(plan.ok());
  const auto text = render_plan(*plan, 4);
  BOOST_TEST_MESSAGE(text);
  BOOST_TEST(text.find("layer3.0 .. loss (4)") != std::string::npos);
  BOOST_TEST(text.find("180 parameters in 2 stages") != std::string::npos);
  BOOST_TEST(text.find("ideal bubble 20.0 %") != std::string::npos);
}
