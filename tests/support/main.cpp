// The entry point of every test executable.

#include <boost/test/unit_test.hpp>

int main(int argc, char* argv[]) {
  // Written out instead of BOOST_TEST_MODULE, which must be set before Boost.Test is first
  // included, and so could not be used with a precompiled header.
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
