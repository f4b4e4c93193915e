#include "core/frequency_loss.hpp"

#include <cmath>

#include <boost/test/unit_test.hpp>

namespace troupe::mp {

BOOST_AUTO_TEST_SUITE(token_frequencies)

BOOST_AUTO_TEST_CASE(the_loss_is_that_of_laplaces_rule) {
  // -(h * log((c + 1) / (c.sum() + 4))).sum() / h.sum() in PyTorch.
  BOOST_TEST(frequency_loss({5, 0, 3, 2}, {2, 1, 0, 1}) == 1.4685245228342036,
             boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_CASE(tokens_that_never_occur_are_equally_likely) {
  BOOST_TEST(frequency_loss({0, 0, 0, 0}, {0, 3, 0, 1}) == std::log(4.0),
             boost::test_tools::tolerance(1e-14));
  BOOST_TEST(frequency_loss({1, 2}, {0, 0}) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe::mp
