#include "core/token_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe::mp {

Result<std::int64_t> choose_token(const std::vector<double>& scores, const TokenChoice& choice,
                                  double draw) {
  if (scores.empty()) return internal_error("token", "no scores");
  for (const double score : scores)
    if (std::isnan(score) || score == std::numeric_limits<double>::infinity())
      return internal_error("token", "a score that is not finite",
                            "the weights may come from a training that diverged");
  std::vector<std::int64_t> tokens(scores.size());
  std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
  const auto score = [&](std::int64_t token) { return scores[static_cast<std::size_t>(token)]; };
  const auto before = [&](std::int64_t a, std::int64_t b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  if (choice.temperature == 0) return *std::min_element(tokens.begin(), tokens.end(), before);

  const std::size_t kept =
      choice.top_k == 0 ? tokens.size() : std::min<std::size_t>(choice.top_k, tokens.size());
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(tokens.begin(), end, tokens.end(), before);
  tokens.erase(end, tokens.end());
  std::vector<double> shares;
  double total = 0;
  for (const std::int64_t token : tokens) {
    shares.push_back(std::exp((score(token) - score(tokens.front())) / choice.temperature));
    total += shares.back();
  }
  double passed = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    passed += shares[i];
    if (draw * total < passed) return tokens[i];
  }
  return tokens.back();
}

}  // namespace troupe::mp
