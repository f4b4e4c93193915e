#include "core/tied_weights.hpp"

#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>

#include "core/random.hpp"
#include "core/state_split.hpp"

using namespace troupe;
using namespace troupe::mp;

namespace {

v1::Layer layer(const std::string& name, const std::string& tied_to = {}, int rows = 3) {
  v1::Layer layer;
  layer.set_name(name);
  layer.set_kind("linear");
  auto* weight = layer.add_parameters();
  weight->set_name(name + ".weight");
  weight->add_shape(rows);
  weight->add_shape(2);
  weight->set_tied_to(tied_to);
  if (tied_to.empty()) weight->mutable_init()->set_normal_std(0.5);
  return layer;
}

/// Layers "a", "b", "c", "d"; c and d are tied to a.
PlanRequest request(const std::vector<std::string>& first_layers) {
  PlanRequest request;
  request.job = "job";
  request.seed = 7;
  request.nodes = {"n"};
  request.layers = {layer("a"), layer("b"), layer("c", "a.weight"), layer("d", "a.weight")};
  for (const auto& first : first_layers) {
    v1::Stage stage;
    stage.set_node("n");
    stage.set_first_layer(first);
    request.stages.push_back(stage);
  }
  request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  request.optimizer->mutable_sgd()->set_momentum(0.9);
  request.loss.emplace().mutable_mse();
  request.locate = [](const std::string& path) { return "at " + path; };
  return request;
}

Plan plan_of(const PlanRequest& request) {
  auto plan = make_plan(request);
  if (!plan) throw std::runtime_error(plan.error().to_string());
  return std::move(plan).value();
}

void check_refused(const PlanRequest& request, const std::string& text) {
  const auto plan = make_plan(request);
  BOOST_REQUIRE(!plan.ok());
  BOOST_TEST((plan.error().code == ErrorCode::bad_input));
  BOOST_TEST(plan.error().to_string() == text);
}

HostTensor tensor(float first) {
  std::vector<float> numbers{first, 1, 2, 3, 4, 5};
  return {v1::DTYPE_FLOAT32, {3, 2}, Blob::copy_of(numbers.data(), 24)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_owner_knows_all_uses_and_each_stage_its_copies) {
  const auto plan = plan_of(request({"", "b", "c"}));
  const auto& owner = plan.stages[0].config;
  BOOST_REQUIRE(owner.tied_weights_size() == 1);
  BOOST_TEST(owner.tied_weights(0).parameter() == "a.weight");
  BOOST_REQUIRE(owner.tied_weights(0).uses_size() == 2);
  BOOST_TEST(owner.tied_weights(0).uses(0).parameter() == "c.weight");
  BOOST_TEST(owner.tied_weights(0).uses(0).stage().actor() == "stage.2");
  BOOST_TEST(owner.tied_weights(0).uses(1).parameter() == "d.weight");
  BOOST_TEST(owner.tied_copies_size() == 0);
  BOOST_TEST(plan.stages[1].config.tied_copies_size() == 0);
  const auto& copies = plan.stages[2].config.tied_copies();
  BOOST_REQUIRE(copies.size() == 1);
  BOOST_TEST(copies[0].owner() == "a.weight");
  BOOST_TEST(copies[0].owner_stage().actor() == "stage.0");
  BOOST_TEST(copies[0].uses_size() == 2);
}

BOOST_AUTO_TEST_CASE(uses_on_the_owners_stage_are_local) {
  const auto plan = plan_of(request({"", "d"}));
  const auto& uses = plan.stages[0].config.tied_weights(0).uses();
  BOOST_TEST(!uses[0].has_stage());
  BOOST_TEST(uses[1].has_stage());
}

BOOST_AUTO_TEST_CASE(copies_begin_with_their_owners_values) {
  const auto plan = plan_of(request({"", "c"}));
  const auto initial = [](const v1::StageConfig& config, int layer) {
    return initial_tensor(config.layers(layer).parameters(0), config.seed(), v1::DTYPE_FLOAT32);
  };
  const auto owned = initial(plan.stages[0].config, 0);
  const auto copy = initial(plan.stages[1].config, 0);
  BOOST_TEST(std::memcmp(owned.data.data(), copy.data.data(), owned.data.size()) == 0);
}

BOOST_AUTO_TEST_CASE(shared_values_are_counted_once_and_kept_once_a_stage) {
  const auto whole = plan_of(request({""}));
  BOOST_TEST(whole.stages[0].parameters == 12u);
  BOOST_TEST(whole.stages[0].weight_bytes == 48u);
  // Values, gradients and momentum of two weights, and a gradient for each of two uses.
  BOOST_TEST(whole.stages[0].training_bytes == 4u * (12 + 24 + 12));
  const auto parts = plan_of(request({"", "c"}));
  BOOST_TEST(parts.stages[1].parameters == 0u);
  BOOST_TEST(parts.stages[1].weight_bytes == 24u);
  BOOST_TEST(parts.stages[1].training_bytes == 4u * (6 + 12));
}

BOOST_AUTO_TEST_CASE(a_frozen_owner_exchanges_nothing) {
  auto frozen = request({"", "c"});
  frozen.stages[0].set_frozen(true);
  const auto plan = plan_of(frozen);
  BOOST_TEST(plan.stages[0].config.tied_weights_size() == 0);
  BOOST_TEST(plan.stages[1].config.tied_copies_size() == 0);
}

BOOST_AUTO_TEST_CASE(a_frozen_copy_of_a_trained_weight_is_refused) {
  auto frozen = request({"", "c"});
  frozen.stages[1].set_frozen(true);
  check_refused(frozen,
                "at stages[1].frozen: stage 1 is frozen, but its \"c.weight\" shares the values of "
                "\"a.weight\", which stage 0 trains; freeze both stages or neither");
}

BOOST_AUTO_TEST_CASE(ties_that_cannot_be_are_refused_by_name) {
  const auto with = [](const v1::Layer& last) {
    auto changed = request({""});
    changed.layers[3] = last;
    return changed;
  };
  const std::string where = "at model.layers.layers[3].parameters[0].tied_to: \"d.weight\" ";
  check_refused(with(layer("d", "z.weight")),
                where +
                    "is tied to \"z.weight\", which is no parameter of an earlier layer; write "
                    "the full name of a parameter of a layer above it");
  check_refused(with(layer("d", "d.weight")),
                where +
                    "is tied to \"d.weight\", which is no parameter of an earlier layer; write "
                    "the full name of a parameter of a layer above it");
  check_refused(with(layer("d", "c.weight")),
                where + "is tied to \"c.weight\", which is tied itself; tie it to \"a.weight\"");
  check_refused(with(layer("d", "a.weight", 4)),
                where + "of shape [4, 2] is tied to \"a.weight\" of shape [3, 2]");
}

BOOST_AUTO_TEST_CASE(buffers_are_not_tied) {
  auto tied = request({""});
  auto* buffer = tied.layers[1].add_buffers();
  buffer->set_name("b.mean");
  buffer->set_tied_to("a.weight");
  check_refused(
      tied,
      "at model.layers.layers[1].buffers[0].tied_to: \"b.mean\" is a buffer, which cannot "
      "be tied; tie parameters only");
}

BOOST_AUTO_TEST_CASE(optimizer_groups_claim_owners_only) {
  auto grouped = request({""});
  grouped.optimizer->add_groups()->add_names("d.weight");
  const auto plan = make_plan(grouped);
  BOOST_REQUIRE(!plan.ok());
  BOOST_TEST(plan.error().to_string().find("d.weight") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_has_shared_values_once_and_sets_all_copies) {
  const auto plan = plan_of(request({"", "b", "c"}));
  TensorMap file{{"a.weight", tensor(0)}, {"b.weight", tensor(9)}};
  const auto split = split_state(plan, file, true, "file");
  BOOST_REQUIRE(split.ok());
  BOOST_TEST(split->at(0).size() == 1u);
  BOOST_REQUIRE(split->at(2).size() == 1u);  // one for both uses
  BOOST_TEST(split->at(2)[0].name == "c.weight");
  BOOST_TEST(split->at(2)[0].tensor.as<float>()[0] == 0);
}

BOOST_AUTO_TEST_CASE(a_file_may_repeat_shared_values_but_not_change_them) {
  const auto plan = plan_of(request({"", "c"}));
  TensorMap file{{"a.weight", tensor(0)}, {"b.weight", tensor(9)}, {"d.weight", tensor(0)}};
  BOOST_TEST(split_state(plan, file, true, "file").ok());
  file["d.weight"] = tensor(1);
  const auto split = split_state(plan, file, true, "file");
  BOOST_REQUIRE(!split.ok());
  BOOST_TEST(split.error().to_string() ==
             "file: d.weight is tied to a.weight, but its values are others; it belongs to another "
             "model: change `model`, or give its weights");
}
