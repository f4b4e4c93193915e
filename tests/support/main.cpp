// The entry point of every test executable. Boost's own header defines one only where it is first
// included, which here is the precompiled header.
#include <boost/test/unit_test.hpp>

int main(int argc, char** argv) {
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
