#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "troupe/result.hpp"

namespace troupe::mp {

/// Cuts text into the words that GPT-2's byte-pair encoding never joins tokens across, by the
/// pattern of OpenAI's encoder.py: English contractions; letters, numbers or other characters, each
/// with one space before them; white space. Letters, numbers and white space are Unicode's.
/// Immutable.
class Gpt2Words {
 public:
  static Result<Gpt2Words> create();

  /// Calls `take` with each word in order; together they are the text. An error names the first
  /// byte that is not UTF-8.
  Result<void> for_each(std::string_view text, const std::string& where,
                        const std::function<void(std::string_view)>& take) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace troupe::mp
