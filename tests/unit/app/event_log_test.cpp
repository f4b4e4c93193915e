#include "app/event_log.hpp"

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe {

BOOST_AUTO_TEST_SUITE(event_log)

BOOST_AUTO_TEST_CASE(strings_are_quoted_for_json) {
  BOOST_TEST(quote_json("a\"b\\c\nd") == "\"a\\\"b\\\\c\\u000ad\"");
  BOOST_TEST(quote_json("") == "\"\"");
}

BOOST_AUTO_TEST_CASE(the_directory_appears_with_the_first_event) {
  test::TemporaryDirectory files;
  const auto directory = files.path() / "runs" / "job";
  EventLog log(directory);
  BOOST_TEST(!std::filesystem::exists(directory));
  log.append("{\"event\":\"first\"}");
  log.append({{"event", "second"}, {"node", ""}});
  const std::string text = test::read_text(directory / "events.jsonl");
  BOOST_TEST(text.rfind("{\"event\":\"first\"}\n{\"time\":", 0) == 0u);
  BOOST_TEST(text.find(",\"event\":\"second\"}\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_run_replaces_the_events_of_an_earlier_one) {
  test::TemporaryDirectory files;
  EventLog(files.path()).append("{\"event\":\"old\"}");
  EventLog(files.path()).append("{\"event\":\"new\"}");
  BOOST_TEST(test::read_text(files.path() / "events.jsonl") == "{\"event\":\"new\"}\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
