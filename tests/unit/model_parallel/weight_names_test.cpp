// Files of GPT-2 come under two forms of names and with masks that are no weights.
#include "core/weight_names.hpp"

#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "core/model_catalog.hpp"

using namespace troupe::mp;

namespace {

Plan plan_of(const std::string& text) {
  v1::Model model;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &model));
  PlanRequest request;
  request.job = "names";
  auto layers = list_layers(model);
  BOOST_REQUIRE(layers.ok());
  request.layers = *layers;
  request.nodes = {"here"};
  request.stages.emplace_back().set_node("here");
  request.train = false;
  auto plan = make_plan(request);
  BOOST_REQUIRE(plan.ok());
  return *plan;
}

Plan gpt2() {
  return plan_of("gpt2 { layers: 1 heads: 1 width: 8 vocab_size: 20 untied_head: true }");
}

/// What becomes of a file with these names.
std::set<std::string> renamed(const Plan& plan, const std::set<std::string>& names) {
  TensorMap tensors;
  for (const auto& name : names) tensors[name];
  std::set<std::string> result;
  for (const auto& [name, tensor] : to_plan_names(plan, tensors)) result.insert(name);
  return result;
}

using Names = std::set<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(weight_names)

BOOST_AUTO_TEST_CASE(the_prefix_of_gpt2_is_added_where_it_is_missing) {
  const Names expected = {"transformer.wte.weight", "transformer.h.0.attn.c_attn.bias",
                          "transformer.ln_f.weight", "lm_head.weight"};
  const auto plan = gpt2();
  BOOST_TEST((renamed(plan, {"wte.weight", "h.0.attn.c_attn.bias", "ln_f.weight",
                             "lm_head.weight"}) == expected));
  BOOST_TEST((renamed(plan, expected) == expected));
}

BOOST_AUTO_TEST_CASE(causal_masks_are_left_out) {
  const auto plan = gpt2();
  for (const std::string prefix : {"", "transformer."})
    BOOST_TEST((renamed(plan, {prefix + "h.0.attn.bias", prefix + "h.0.attn.masked_bias",
                               prefix + "h.0.attn.c_proj.bias"}) ==
                Names{"transformer.h.0.attn.c_proj.bias"}));
}

BOOST_AUTO_TEST_CASE(names_that_no_form_explains_stay_for_the_check_to_refuse) {
  const auto plan = gpt2();
  const Names both = {"wte.weight", "transformer.wte.weight"};
  BOOST_TEST((renamed(plan, both) == both));
  const Names unknown = {"h.7.ln_1.weight", "attn.bias"};
  BOOST_TEST((renamed(plan, unknown) == unknown));
}

BOOST_AUTO_TEST_CASE(tensors_of_other_models_keep_their_names) {
  const auto plan = plan_of("mlp { in_features: 2 hidden_features: 3 out_features: 2 }");
  const Names names = {"0.weight", "h.0.attn.bias", "wte.weight"};
  BOOST_TEST((renamed(plan, names) == names));
}

BOOST_AUTO_TEST_SUITE_END()
