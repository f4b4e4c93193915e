#include "core/token_choice.hpp"

#include <limits>

#include <boost/test/unit_test.hpp>

namespace troupe::mp {
namespace {

const std::vector<double> scores{2, 1, 0.5, 3, 1};

std::int64_t chosen(double draw, double temperature, std::uint32_t top_k = 0) {
  const auto token = choose_token(scores, {temperature, top_k}, draw);
  BOOST_REQUIRE(token.ok());
  return *token;
}

/// Where along [0, 1) the tokens of this choice end, in the order in which they lie there.
struct Ends {
  TokenChoice choice;
  std::vector<std::int64_t> tokens;
  std::vector<double> ends;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(token_choice)

BOOST_AUTO_TEST_CASE(tokens_have_the_probabilities_of_pytorchs_softmax) {
  // torch.softmax(scores / temperature), renormalised over the top k, and torch.cumsum.
  const std::vector<Ends> all{
      {{0.7, 0},
       {3, 0, 1, 4, 2},
       {0.7232582836285967, 0.8965878809152897, 0.9381264985510813, 0.9796651161868729, 1}},
      {{1, 0},
       {3, 0, 1, 4, 2},
       {0.5811807828835456, 0.7949852445103257, 0.8736395103735467, 0.9522937762367677, 1}},
      {{2, 3}, {3, 0, 1}, {0.506480391055654, 0.8136762767741524, 1}}};
  for (const auto& [choice, tokens, ends] : all) {
    double begin = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      BOOST_TEST(chosen(begin + 1e-12, choice.temperature, choice.top_k) == tokens[i]);
      BOOST_TEST(chosen(ends[i] - 1e-12, choice.temperature, choice.top_k) == tokens[i]);
      begin = ends[i];
    }
  }
}

BOOST_AUTO_TEST_CASE(temperature_zero_takes_the_most_probable_and_of_equals_the_first) {
  BOOST_TEST(chosen(0.999, 0) == 3);
  BOOST_TEST(chosen(0.999, 5, 1) == 3);
  BOOST_TEST(*choose_token({1, 4, 4}, {0, 0}, 0.5) == 1);
  BOOST_TEST(*choose_token({1, 4, 4}, {1, 1}, 0.5) == 1);
}

BOOST_AUTO_TEST_CASE(no_draw_falls_behind_the_last_token) {
  BOOST_TEST(chosen(1 - std::numeric_limits<double>::epsilon() / 2, 1) == 2);
  BOOST_TEST(chosen(0.5, 1, 100) == chosen(0.5, 1));
}

BOOST_AUTO_TEST_CASE(huge_scores_are_probabilities_too) {
  BOOST_TEST(*choose_token({1e300, -1e300, 1e300}, {1, 0}, 0.6) == 2);
  const double lowest = -std::numeric_limits<double>::infinity();
  BOOST_TEST(*choose_token({lowest, 0}, {1, 0}, 0.999) == 1);
}

BOOST_AUTO_TEST_CASE(scores_that_are_no_numbers_are_an_error) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), infinity})
    BOOST_TEST(!choose_token({1, wrong}, {1, 0}, 0.5).ok());
  BOOST_TEST(!choose_token({}, {1, 0}, 0.5).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp
