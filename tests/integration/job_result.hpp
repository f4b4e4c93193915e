#pragma once

#include <chrono>
#include <optional>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/process.hpp"

namespace troupe::test {

/// The object that a job with --json prints as its only line, within `patience`, before it ends
/// well.
inline nlohmann::json result_of(Process run,
                                std::chrono::milliseconds patience = std::chrono::minutes(5)) {
  const auto line = run.read_line(patience);
  BOOST_REQUIRE_MESSAGE(line, run.error_output());
  BOOST_REQUIRE_MESSAGE(run.wait().value_or(-1) == 0, run.error_output());
  BOOST_REQUIRE_MESSAGE(!run.read_line(), "more than one line");
  return nlohmann::json::parse(*line);
}

}  // namespace troupe::test
