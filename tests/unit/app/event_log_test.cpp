#include "app/event_log.hpp"

#include <algorithm>

#include <boost/test/unit_test.hpp>

#include "support/process.hpp"

namespace troupe {

BOOST_AUTO_TEST_SUITE(event_log)

BOOST_AUTO_TEST_CASE(events_are_kept_until_there_is_a_file) {
  test::TemporaryDirectory files;
  const auto file = files.path() / "events.jsonl";
  EventLog log;
  log.append("{\"event\":\"first\"}");
  BOOST_TEST(!std::filesystem::exists(file));
  log.open(file);
  log.append(new_event("second").add("node", "a"));
  const std::string text = test::read_text(file);
  BOOST_TEST(text.rfind("{\"event\":\"first\"}\n{\"time\": ", 0) == 0u, text);
  BOOST_TEST(text.find("\"event\": \"second\", \"node\": \"a\"}\n") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(without_a_file_memory_is_bounded) {
  test::TemporaryDirectory files;
  EventLog log;
  for (int i = 0; i < 5000; ++i) log.append("{}");
  log.open(files.path() / "events.jsonl");
  const std::string text = test::read_text(files.path() / "events.jsonl");
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 1000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
