// The same for tests.
#include <boost/test/unit_test.hpp>

#include "common.hpp"
