#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "troupe/result.hpp"

namespace troupe::mp {

/// What vocab.json says.
struct Gpt2Vocabulary {
  std::unordered_map<std::string, std::int32_t> numbers;  ///< by the token as the file writes it
  std::unordered_map<std::int32_t, std::string> bytes;    ///< what a token stands for
  std::array<std::int32_t, 256> of_byte{};                ///< the token of each single byte
  std::int64_t size = 0;                                  ///< the largest number, plus one

  static Result<Gpt2Vocabulary> read(const std::string& path);
};

/// A line of merges.txt: `left` and `right`, side by side, become `joined`.
struct Gpt2Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t joined = 0;
};

/// The merges in the file's order, which is the order in which they are made.
Result<std::vector<Gpt2Merge>> read_gpt2_merges(const std::string& path,
                                                const Gpt2Vocabulary& vocabulary);

}  // namespace troupe::mp
