#include "app/terminal_console.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

/// What a console writes while `use` works with it.
std::string written(bool terminal, bool json, const std::function<void(Console&)>& use) {
  std::FILE* file = std::tmpfile();
  BOOST_REQUIRE(file != nullptr);
  {
    TerminalConsole console(file, terminal, json, std::chrono::hours(1));
    use(console);
  }
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(console)

BOOST_AUTO_TEST_CASE(the_bar_is_filled_by_the_fraction_and_nothing_else) {
  BOOST_TEST(render_progress(0.5, "text", 4) == "[==  ]  50%  text");
  BOOST_TEST(render_progress(-1, "", 4) == "[    ]   0%  ");
  BOOST_TEST(render_progress(7, "", 4) == "[====] 100%  ");
  BOOST_TEST(render_progress(std::nan(""), "", 4) == "[    ]   0%  ");
  // Not done yet is never shown as done.
  BOOST_TEST(render_progress(0.999, "", 4) == "[=== ]  99%  ");
}

BOOST_AUTO_TEST_CASE(elsewhere_lines_are_plain_few_and_include_the_last) {
  const std::string text = written(false, false, [](Console& console) {
    for (int i = 1; i <= 10; ++i) console.progress(i / 10.0, "step " + std::to_string(i));
    console.line("done");
  });
  BOOST_TEST(text == " 10%  step 1\n100%  step 10\ndone\n");
}

BOOST_AUTO_TEST_CASE(on_a_terminal_lines_go_above_the_bar_and_the_end_leaves_a_fresh_line) {
  const std::string text = written(true, false, [](Console& console) {
    console.progress(0.5, "x");
    console.line("note");
  });
  const std::string bar = render_progress(0.5, "x", 24);
  const std::string blank = "\r" + std::string(bar.size(), ' ') + "\r";
  BOOST_TEST(text == bar + blank + "note\n" + bar + "\n");
}

BOOST_AUTO_TEST_CASE(json_is_the_result_alone) {
  const std::string text = written(true, true, [](Console& console) {
    console.progress(0.5, "x");
    console.line("note");
    console.result("{}");
  });
  BOOST_TEST(text == "{}\n");
  BOOST_TEST(written(false, false, [](Console& console) { console.result("{}"); }) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
