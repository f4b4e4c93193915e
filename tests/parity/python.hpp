#pragma once

#include <string>
#include <vector>

namespace troupe::mp::test {

/// Runs a script of tests/parity to its end with Debian's Python, whose packages python3-torch and
/// python3-torchvision are found when the test runs and not when it is configured. Returns the
/// lines that the script printed; throws with what it wrote to stderr when it fails.
std::vector<std::string> run_python(const std::string& script,
                                    const std::vector<std::string>& arguments);

}  // namespace troupe::mp::test
