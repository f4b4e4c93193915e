// Kinds of layers and losses as the executor looks them up.
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <boost/test/unit_test.hpp>

#include "support/libtorch/stage.hpp"

using namespace troupe;
using namespace troupe::mp;
using namespace troupe::mp::test;

namespace {

class LossOfNothing final : public libtorch::Layer {
 public:
  bool is_loss() const override { return true; }
  FunctionLayer::Tensors forward(const FunctionLayer::Tensors& inputs,
                                 const libtorch::ForwardContext&) override {
    return {inputs[0].sum()};
  }
};

template <class LayerType>
std::unique_ptr<libtorch::Layer> make(const libtorch::LayerSetup&) {
  return std::make_unique<LayerType>();
}

std::unique_ptr<libtorch::Layer> pass_on(const libtorch::LayerSetup&) {
  return std::make_unique<FunctionLayer>(
      [](const FunctionLayer::Tensors& inputs) { return inputs; });
}

libtorch::LayerSetup setup_of(const std::string& kind) {
  v1::Layer config;
  config.set_name("x");
  config.set_kind(kind);
  return {config, {}};
}

std::string error_of(const Result<std::unique_ptr<libtorch::Layer>>& created) {
  BOOST_REQUIRE(!created.ok());
  BOOST_TEST((created.error().code == ErrorCode::bad_input));
  return created.error().to_string();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_kinds)

BOOST_AUTO_TEST_CASE(a_kind_has_one_library) {
  libtorch::LayerKinds kinds;
  BOOST_TEST(kinds.add("own", pass_on).ok());
  BOOST_TEST(kinds.add_from("first", "shared", pass_on).ok());
  const auto again = kinds.add_from("second", "shared", pass_on);
  BOOST_REQUIRE(!again.ok());
  BOOST_TEST(again.error().where == "kind \"shared\"");
  BOOST_TEST(again.error().what ==
             "registered twice, by the layer library \"first\" and by the layer library "
             "\"second\"");
  const auto ours = kinds.add_from("second", "own", pass_on);
  BOOST_REQUIRE(!ours.ok());
  BOOST_TEST(contains(ours.error().what, "by Troupe itself and by the layer library \"second\""));
}

BOOST_AUTO_TEST_CASE(the_name_of_a_kind_tells_whether_it_is_a_loss) {
  libtorch::LayerKinds kinds;
  BOOST_TEST(kinds.add("loss.nothing", make<LossOfNothing>).ok());
  BOOST_TEST(kinds.add("nothing", make<LossOfNothing>).ok());
  BOOST_TEST(kinds.add("loss.pass", pass_on).ok());
  BOOST_TEST(kinds.add("absent", [](const auto&) { return nullptr; }).ok());
  BOOST_TEST(kinds.create(setup_of("loss.nothing")).ok());
  BOOST_TEST(contains(error_of(kinds.create(setup_of("nothing"))), "kind 'nothing' is a loss"));
  BOOST_TEST(
      contains(error_of(kinds.create(setup_of("loss.pass"))), "kind 'loss.pass' is not a loss"));
  BOOST_TEST(contains(error_of(kinds.create(setup_of("absent"))), "kind 'absent' made no layer"));
  BOOST_TEST(contains(error_of(kinds.create(setup_of("other"))),
                      "unknown kind 'other'; known kinds: absent, loss.nothing, loss.pass, "
                      "nothing; others come from layer_libraries"));
}

BOOST_AUTO_TEST_CASE(of_probabilities_the_largest_is_the_class) {
  const auto created = layer_registry()->create(setup_of("loss.cross_entropy"));
  BOOST_REQUIRE(created.ok());
  const at::Tensor outputs = at::tensor({3.0, 1.0, 0.0, 4.0, 2.0, 1.0}).reshape({3, 2});
  const at::Tensor shares = at::tensor({0.7, 0.3, 0.4, 0.6, 0.1, 0.9}).reshape({3, 2});
  BOOST_TEST((*created)->count_correct({outputs, shares}) == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
