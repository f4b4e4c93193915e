// The entry point of every test executable.
#define BOOST_TEST_MODULE troupe
#include <boost/test/unit_test.hpp>
