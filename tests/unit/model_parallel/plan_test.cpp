#include "core/plan.hpp"

#include <limits>

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
  result.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  result.optimizer->mutable_sgd()->set_momentum(0.9);
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
  BOOST_TEST(first.outbound(0).reader().actor() == "stage.1");
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
  BOOST_TEST(last.outbound(0).reader().node() == "driver");
  BOOST_TEST(last.outbound(0).reader().actor() == "pipeline");
  BOOST_TEST(plan->fields.count("targets") == 0u);
  BOOST_TEST(!plan->loss_stage.has_value());
}

BOOST_AUTO_TEST_CASE(values_skip_stages_and_pass_from_reader_to_reader) {
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
  BOOST_TEST(first.outbound(1).value().slot() == 1u);
  BOOST_TEST(first.outbound(1).reader().actor() == "stage.2");
  BOOST_REQUIRE(plan->stages[1].config.outbound_size() == 1);  // b only: it does not read a:1
  const auto& third = plan->stages[2].config;
  BOOST_REQUIRE(third.inbound_size() == 2);  // b, a:1
  BOOST_TEST(third.inbound(1).producer().actor() == "stage.0");
  BOOST_REQUIRE(third.outbound_size() == 2);  // c and a:1, in the order in which stage 3 reads
  BOOST_TEST(third.outbound(1).value().layer() == "a");
  BOOST_TEST(third.outbound(1).reader().actor() == "stage.3");
  const auto& last = plan->stages[3].config;
  BOOST_REQUIRE(last.inbound_size() == 4);  // c, a:1, mask, targets
  BOOST_TEST(last.inbound(1).value().layer() == "a");
  BOOST_TEST(last.inbound(1).producer().actor() == "stage.2");
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
  BOOST_TEST(plan->stages[0].config.outbound_size() == 1);
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
  check_error(forward_read, "at model.layers.layers[1].reads[0].layer",
              "layer \"layer1.0\" reads output 0 of");

  auto no_such_slot = request();
  reads(no_such_slot.layers[1], "stem", 1);
  check_error(no_such_slot, "at model.layers.layers[1].reads[0].slot", "which has only 1");

  auto duplicate = request();
  duplicate.layers[5].set_name("stem");
  check_error(duplicate, "at model.layers.layers[5]", "two layers are called \"stem\"");
}

BOOST_AUTO_TEST_CASE(a_training_needs_a_usable_optimizer) {
  const auto with = [](const auto& change) {
    auto changed = request();
    change(*changed.optimizer->mutable_sgd());
    return changed;
  };
  auto none = request();
  none.optimizer.reset();
  check_error(none, "at optimizer", "an optimizer is needed");
  none.optimizer.emplace();
  check_error(none, "at optimizer", "an optimizer is needed");
  none.train = false;
  BOOST_TEST(make_plan(none).ok());

  check_error(with([](auto& sgd) { sgd.clear_lr(); }), "at optimizer.sgd.lr", "lr is missing");
  BOOST_TEST(make_plan(with([](auto& sgd) { sgd.set_lr(0); })).ok());
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double lr : {-0.1, nan, infinity})
    check_error(with([&](auto& sgd) { sgd.set_lr(lr); }), "at optimizer.sgd.lr",
                "optimizer.sgd.lr is ");
  check_error(with([](auto& sgd) { sgd.set_momentum(1.5); }), "at optimizer.sgd.momentum",
              "at most 1");
  check_error(with([](auto& sgd) { sgd.set_weight_decay(nan); }), "at optimizer.sgd.weight_decay",
              "finite");
  check_error(with([](auto& sgd) {
                sgd.set_nesterov(true);
                sgd.set_momentum(0);
              }),
              "at optimizer.sgd.nesterov", "needs momentum");
}

BOOST_AUTO_TEST_CASE(numbers_of_stages_are_checked_whoever_wrote_them) {
  auto threads = request();
  threads.stages[1].set_threads(5000);
  check_error(threads, "at stages[1].threads", "at most 1024");
  auto slow = request();
  slow.stages[0].set_slow_down_seconds(std::numeric_limits<double>::quiet_NaN());
  check_error(slow, "at stages[0].slow_down_seconds", "finite");
}

BOOST_AUTO_TEST_CASE(without_a_loss_the_last_layer_has_one_output) {
  auto two = request();
  two.layers[5].set_outputs(2);
  BOOST_TEST(make_plan(two).ok());
  two.loss.reset();
  check_error(two, "at model.layers.layers[5].outputs", "\"fc\", has 2 outputs");
}

BOOST_AUTO_TEST_CASE(a_field_that_the_data_lacks_is_an_error_at_its_reader) {
  auto masked = request();
  reads(masked.layers[4], "layer3.0");
  reads_field(masked.layers[4], "mask");
  const auto plan = make_plan(masked);
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(check_fields(*plan, {"inputs", "targets", "mask"}, masked.locate).ok());
  const auto missing = check_fields(*plan, {"inputs", "targets"}, masked.locate);
  BOOST_REQUIRE(!missing.ok());
  BOOST_TEST(missing.error().where == "at model.layers.layers[4]");
  BOOST_TEST(missing.error().what ==
             "layer \"layer3.1\" reads field \"mask\", which the data does not have");
}

BOOST_AUTO_TEST_CASE(a_frozen_stage_needs_no_memory_for_gradients) {
  auto frozen = request();
  frozen.stages[0].set_frozen(true);
  const auto plan = make_plan(frozen);
  BOOST_REQUIRE(plan.ok());
  BOOST_TEST(plan->stages[0].training_bytes == plan->stages[0].weight_bytes);
}

BOOST_AUTO_TEST_CASE(the_table_shows_stages_and_bubble) {
  const auto plan = make_plan(request());
  BOOST_REQUIRE(plan.ok());
  const auto text = render_plan(*plan, 4);
  BOOST_TEST_MESSAGE(text);
  BOOST_TEST(text.find("layer3.0 .. loss (4)") != std::string::npos);
  BOOST_TEST(text.find("180 parameters in 2 stages") != std::string::npos);
  BOOST_TEST(text.find("ideal bubble 20.0 %") != std::string::npos);
  BOOST_TEST(text.find("training MB: weights, their gradients") != std::string::npos);
}
