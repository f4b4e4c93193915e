#include "core/data_fit.hpp"

#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>

#include "core/model_catalog.hpp"

namespace troupe::mp {
namespace {

Plan plan_of(const std::string& model, const std::string& loss) {
  v1::Model config;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(model, &config));
  PlanRequest request;
  auto layers = list_layers(config);
  BOOST_REQUIRE(layers.ok());
  request.layers = *layers;
  request.nodes = {"a"};
  request.stages.emplace_back().set_node("a");
  request.optimizer.emplace().mutable_sgd()->set_lr(0.1);
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(loss, &request.loss.emplace()));
  auto plan = make_plan(request);
  BOOST_REQUIRE(plan.ok());
  return std::move(*plan);
}

Result<void> fit(const std::string& model, const DataBounds& bounds,
                 const std::string& loss = "cross_entropy {}") {
  return check_data_fits(plan_of(model, loss), bounds, "data",
                         [](const std::string& path) { return "at " + path; });
}

void expect_refused(const Result<void>& result, const std::string& what) {
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST((result.error().code == ErrorCode::bad_input));
  BOOST_TEST(result.error().where == "at data");
  BOOST_TEST(result.error().what == what);
}

const std::string gpt = "gpt2 { vocab_size: 50 context: 8 layers: 1 heads: 1 width: 4 }";

}  // namespace

BOOST_AUTO_TEST_SUITE(data_fit)

BOOST_AUTO_TEST_CASE(a_token_needs_its_vector) {
  BOOST_TEST(fit(gpt, {50, 50}).ok());
  BOOST_TEST(fit(gpt, {}).ok());
  expect_refused(fit(gpt, {51, 51}),
                 "the data has 51 tokens, layer \"transformer.wte\" has vectors for 50");
}

BOOST_AUTO_TEST_CASE(a_class_needs_its_output) {
  const std::string vit =
      "vit { image_size: 8 patch_size: 4 layers: 1 heads: 1 width: 4 mlp_width: 4 num_classes: 9 }";
  const std::string mlp = "mlp { in_features: 4 hidden_features: 3 out_features: 9 }";
  for (const auto& model : {std::string("resnet { depth: 18 num_classes: 9 }"), vit, mlp,
                            std::string("vgg { depth: 11 num_classes: 9 }")}) {
    BOOST_TEST(fit(model, {{}, 9}).ok(), model);
    BOOST_TEST(!fit(model, {{}, 10}).ok(), model);
  }
  expect_refused(fit("resnet { depth: 18 num_classes: 9 }", {{}, 10}),
                 "the data has 10 classes, layer \"fc\" tells 9 apart");
}

BOOST_AUTO_TEST_CASE(other_losses_and_other_last_layers_say_nothing_of_classes) {
  BOOST_TEST(fit("resnet { depth: 18 num_classes: 9 }", {{}, 10}, "mse {}").ok());
  BOOST_TEST(fit("layers { layers { name: 'a' kind: 'own' } }", {{}, 10}).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp
