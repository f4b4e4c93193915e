#pragma once

#include <cstdint>
#include <vector>

#include "troupe/result.hpp"

namespace troupe::mp {

/// How the next token of a text is chosen.
struct TokenChoice {
  double temperature = 1;   ///< 0: always the most probable token
  std::uint32_t top_k = 0;  ///< only among this many of the most probable; 0: among all
};

/// The index of the token chosen by its score: a token has the probability softmax(scores /
/// temperature), over those that may be chosen. `draw` is uniform on [0, 1) and decides: the tokens
/// lie side by side in [0, 1), the most probable first, and of equals the one with the lower index.
/// The same arguments give the same token. Errors: no scores, or one that is NaN or +infinity.
Result<std::int64_t> choose_token(const std::vector<double>& scores, const TokenChoice& choice,
                                  double draw);

}  // namespace troupe::mp
