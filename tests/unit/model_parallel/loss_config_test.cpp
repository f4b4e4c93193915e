#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>
#include <vector>

#include "core/loss_config.hpp"

namespace troupe::mp {
namespace {

v1::Loss loss_of(const std::string& text) {
  v1::Loss loss;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return loss;
}

template <class T>
HostTensor tensor_of(v1::DType dtype, Shape shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), Blob::copy_of(values.data(), values.size() * sizeof(T))};
}

BOOST_AUTO_TEST_SUITE(loss_config)

BOOST_AUTO_TEST_CASE(a_loss_becomes_a_layer_with_every_number_filled_in) {
  const auto layer_of = [](const std::string& text) {
    v1::Layer layer;
    set_loss_kind(loss_of(text), layer);
    return layer;
  };
  BOOST_TEST(layer_of("mse {}").kind() == "loss.mse");
  BOOST_TEST(layer_of("l1 {}").kind() == "loss.l1");
  BOOST_TEST(layer_of("huber {}").attributes().at("delta") == 1.0);
  BOOST_TEST(layer_of("huber { delta: 0.5 }").attributes().at("delta") == 0.5);
  const auto usual = layer_of("cross_entropy {}");
  BOOST_TEST(usual.kind() == "loss.cross_entropy");
  BOOST_TEST(usual.attributes().at("label_smoothing") == 0.0);
  BOOST_TEST(usual.attributes().at("ignore_index") == -100.0);
  const auto own = layer_of("cross_entropy { label_smoothing: 0.1 ignore_index: 0 }");
  BOOST_TEST(own.attributes().at("label_smoothing") == 0.1);
  BOOST_TEST(own.attributes().at("ignore_index") == 0.0);
  const auto weights = layer_of("bce_with_logits { pos_weight: [3, 4] }");
  BOOST_TEST(weights.kind() == "loss.bce_with_logits");
  BOOST_TEST(weights.attributes().at("pos_weight.0") == 3.0);
  BOOST_TEST(weights.attributes().at("pos_weight.1") == 4.0);
}

BOOST_AUTO_TEST_CASE(each_loss_wants_its_kind_of_targets) {
  BOOST_TEST(wants_class_indices(loss_of("cross_entropy {}")));
  BOOST_TEST(!wants_numbers(loss_of("cross_entropy {}")));
  for (const char* text : {"mse {}", "l1 {}", "huber {}", "bce_with_logits {}"}) {
    BOOST_TEST(wants_numbers(loss_of(text)), text);
    BOOST_TEST(!wants_class_indices(loss_of(text)), text);
  }
  BOOST_TEST(!wants_numbers(v1::Loss()));
  BOOST_TEST(!wants_class_indices(v1::Loss()));
}

BOOST_AUTO_TEST_CASE(a_loss_of_a_library_says_what_its_targets_are) {
  const auto custom = [](const std::string& more) {
    return loss_of("custom { kind: 'loss.own' " + more + " }");
  };
  BOOST_TEST(!wants_class_indices(custom("")));
  BOOST_TEST(!wants_numbers(custom("")));
  BOOST_TEST(wants_numbers(custom("targets: TARGETS_NUMBERS")));
  BOOST_TEST(!wants_class_indices(custom("targets: TARGETS_NUMBERS")));
  const auto indices = custom(
      "targets: TARGETS_CLASS_INDICES ignore_index: 7 "
      "attributes { key: 'gamma' value: 2 }");
  BOOST_TEST(wants_class_indices(indices));
  BOOST_TEST(!wants_numbers(indices));
  v1::Layer layer;
  set_loss_kind(indices, layer);
  BOOST_TEST(layer.kind() == "loss.own");
  BOOST_TEST(layer.attributes().at("gamma") == 2.0);
  BOOST_TEST(layer.attributes().at("ignore_index") == 7.0);
  const auto tokens = tensor_of<std::int64_t>(v1::DTYPE_INT64, {2, 3}, {1, 7, 2, 7, 7, 0});
  BOOST_TEST(TargetCount(indices).in(tokens) == 3u);
  BOOST_TEST(TargetCount(custom("")).in(tokens) == 2u);
  BOOST_TEST(!TargetCount(custom("")).depends_on_targets());
}

BOOST_AUTO_TEST_CASE(a_cross_entropy_counts_the_targets_that_are_not_ignored) {
  const TargetCount count(loss_of("cross_entropy {}"));
  BOOST_TEST(count.depends_on_targets());
  const auto tokens = tensor_of<std::int64_t>(v1::DTYPE_INT64, {2, 3}, {1, -100, 2, -100, -100, 0});
  BOOST_TEST(count.in(tokens) == 3u);
  BOOST_TEST(count.in(tokens.rows(1, 2)) == 1u);
  BOOST_TEST(count.in(tokens.rows(0, 1)) == 2u);
  const TargetCount padded(loss_of("cross_entropy { ignore_index: 7 }"));
  BOOST_TEST(padded.in(tokens) == 6u);
  BOOST_TEST(padded.in(tensor_of<std::uint8_t>(v1::DTYPE_UINT8, {3}, {7, 6, 7})) == 1u);
  BOOST_TEST(padded.in(tensor_of<std::int8_t>(v1::DTYPE_INT8, {2}, {7, 6})) == 1u);
  BOOST_TEST(padded.in(tensor_of<std::int16_t>(v1::DTYPE_INT16, {2}, {6, 6})) == 2u);
  BOOST_TEST(padded.in(tensor_of<std::int32_t>(v1::DTYPE_INT32, {2}, {7, 7})) == 0u);
}

BOOST_AUTO_TEST_CASE(everything_else_counts_by_the_sample) {
  const auto numbers = tensor_of<float>(v1::DTYPE_FLOAT32, {2, 2}, {1, -100, 2, 3});
  BOOST_TEST(!TargetCount(loss_of("mse {}")).depends_on_targets());
  BOOST_TEST(TargetCount(loss_of("mse {}")).in(numbers) == 2u);
  BOOST_TEST(TargetCount().in(numbers) == 2u);
  BOOST_TEST(TargetCount(loss_of("cross_entropy {}")).in(numbers) == 2u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::mp
