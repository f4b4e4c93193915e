#include <boost/test/unit_test.hpp>

#include <google/protobuf/text_format.h>

#include "core/optimizer_config.hpp"

using namespace troupe::mp;

namespace {

template <class Message>
Message parse(const std::string& text) {
  Message message;
  BOOST_REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

std::string as_it_is(const std::string& path) { return path; }

std::string place_of_error(const std::string& schedule, RunLength run) {
  const auto made = LearningRate::make(1, parse<v1::LearningRateSchedule>(schedule), run, as_it_is);
  return made ? "none" : made.error().where;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer_config)

BOOST_AUTO_TEST_CASE(patterns_match_whole_names) {
  BOOST_TEST(matches_pattern("layer1.0.conv1.weight", "layer1.0.conv1.weight"));
  BOOST_TEST(matches_pattern("*.bias", "layer1.0.bn1.bias"));
  BOOST_TEST(matches_pattern("*", ""));
  BOOST_TEST(matches_pattern("layer?.*.bn*.*", "layer1.0.bn2.weight"));
  BOOST_TEST(matches_pattern("*a*ab", "aaaab"));
  BOOST_TEST(!matches_pattern("layer1", "layer1.0.conv1.weight"));
  BOOST_TEST(!matches_pattern("*.bias", "bias.weight"));
  BOOST_TEST(!matches_pattern("?", ""));
  BOOST_TEST(!matches_pattern("layer?.weight", "layer10.weight"));
  // What means something in other pattern languages stands for itself.
  BOOST_TEST(!matches_pattern("layer[12].weight", "layer1.weight"));
  BOOST_TEST(!matches_pattern("layer1.weight", "layer1xweight"));
}

BOOST_AUTO_TEST_CASE(the_first_group_that_matches_has_the_parameter) {
  const auto optimizer = parse<v1::Optimizer>(
      "adamw { lr: 0.1 weight_decay: 0.2 } groups { names: '*.bias' weight_decay: 0 } "
      "groups { names: ['fc.*', 'stem.*'] lr: 0 }");
  BOOST_TEST(group_of(optimizer, "fc.bias") == 1u);
  BOOST_TEST(group_of(optimizer, "stem.conv1.weight") == 2u);
  BOOST_TEST(group_of(optimizer, "layer1.0.conv1.weight") == 0u);
  BOOST_TEST(learning_rate_of(optimizer, 0) == 0.1);
  BOOST_TEST(learning_rate_of(optimizer, 1) == 0.1);
  BOOST_TEST(learning_rate_of(optimizer, 2) == 0.0);
  BOOST_TEST(weight_decay_of(optimizer, 1) == 0.0);
  BOOST_TEST(weight_decay_of(optimizer, 2) == 0.2);
  BOOST_TEST(check_optimizer(optimizer, {"fc.weight", "fc.bias", "stem.weight"}, as_it_is).ok());
}

BOOST_AUTO_TEST_CASE(a_pattern_without_a_parameter_is_an_error) {
  const auto optimizer =
      parse<v1::Optimizer>("sgd { lr: 1 } groups { names: ['fc.*', '*.bais'] lr: 2 }");
  const auto checked = check_optimizer(optimizer, {"fc.weight", "fc.bias"}, as_it_is);
  BOOST_REQUIRE(!checked.ok());
  BOOST_TEST(checked.error().where == "optimizer.groups[0].names[1]");
  BOOST_TEST(checked.error().what == "\"*.bais\" matches no parameter");
}

BOOST_AUTO_TEST_CASE(schedules_that_cannot_be_are_errors) {
  BOOST_TEST(place_of_error("cosine {}", {0, 0}) == "cosine.length");
  BOOST_TEST(place_of_error("cosine { length: 5 }", {0, 0}) == "none");
  BOOST_TEST(place_of_error("cosine {} warmup { length: 10 }", {10, 0}) == "cosine.length");
  BOOST_TEST(place_of_error("one_cycle {} warmup { length: 12 }", {10, 0}) == "one_cycle.length");
  BOOST_TEST(place_of_error("step { every: 1 } unit: UNIT_EPOCHS", {10, 0}) == "unit");
  BOOST_TEST(place_of_error("multi_step { milestones: [3, 3] }", {10, 0}) ==
             "multi_step.milestones[1]");
}

BOOST_AUTO_TEST_CASE(a_cycle_too_short_to_rise_begins_at_the_top) {
  const auto rate =
      LearningRate::make(1, parse<v1::LearningRateSchedule>("one_cycle {}"), {1, 0}, as_it_is);
  BOOST_REQUIRE(rate.ok());
  BOOST_TEST(rate->at(1) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_cosine_stays_at_its_end) {
  const auto schedule = parse<v1::LearningRateSchedule>("cosine { length: 4 min_lr: 0.25 }");
  const auto rate = LearningRate::make(1, schedule, {}, as_it_is);
  BOOST_REQUIRE(rate.ok());
  BOOST_TEST(rate->at(1) == 1.0);
  BOOST_TEST(rate->at(5) == 0.25);
  BOOST_TEST(rate->at(9) == 0.25);
}

BOOST_AUTO_TEST_SUITE_END()
