#include "parity/python.hpp"

#include <stdexcept>

#include "support/process.hpp"

namespace troupe::mp::test {

std::vector<std::string> run_python(const std::string& script,
                                    const std::vector<std::string>& arguments) {
  constexpr std::chrono::minutes patience{10};
  std::vector<std::string> command{"/usr/bin/python3", TROUPE_SOURCE_DIR "/tests/parity/" + script};
  command.insert(command.end(), arguments.begin(), arguments.end());
  troupe::test::Process process(std::move(command), {{"PYTHONDONTWRITEBYTECODE", "1"}});
  std::vector<std::string> lines;
  while (auto line = process.read_line(patience)) lines.push_back(std::move(*line));
  if (process.wait(patience).value_or(-1) != 0)
    throw std::runtime_error(
        script + " failed; `./dev deps --test` installs what it needs: " + process.error_output());
  return lines;
}

}  // namespace troupe::mp::test
