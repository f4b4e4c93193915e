#include "data/gpt2_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "data/gpt2_vocabulary.hpp"
#include "data/gpt2_words.hpp"

namespace troupe::mp {

namespace {

/// Words up to this length are common enough to keep their tokens.
constexpr std::size_t longest_kept_word = 64;
constexpr std::size_t most_kept_words = std::size_t{1} << 18;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

/// Which pairs of tokens are joined, and which first.
class PairRanks {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit PairRanks(std::vector<Gpt2Merge> merges) : merges_(std::move(merges)) {
    // A pair that is listed twice has its last rank, as in encoder.py's dictionary.
    for (std::size_t rank = 0; rank < merges_.size(); ++rank)
      ranks_[pair_key(merges_[rank].left, merges_[rank].right)] = static_cast<std::uint32_t>(rank);
  }

  std::uint32_t rank(std::int32_t left, std::int32_t right) const {
    const auto found = ranks_.find(pair_key(left, right));
    return found == ranks_.end() ? none : found->second;
  }
  std::int32_t joined(std::uint32_t rank) const { return merges_[rank].joined; }

 private:
  std::vector<Gpt2Merge> merges_;
  std::unordered_map<std::uint64_t, std::uint32_t> ranks_;
};

/// Joins pairs in one word: the pair of the lowest rank wherever it stands, from left to right,
/// then the next, until no pair has a rank.
class WordJoiner {
 public:
  WordJoiner(std::vector<std::int32_t>& tokens, const PairRanks& pairs)
      : tokens_(tokens), pairs_(pairs) {
    ranks_.assign(tokens_.empty() ? 0 : tokens_.size() - 1, stale);
    rank_stale();
  }

  void join_all() {
    while (!ranks_.empty()) {
      const std::uint32_t lowest = *std::min_element(ranks_.begin(), ranks_.end());
      if (lowest == PairRanks::none) return;
      join(lowest);
      rank_stale();
    }
  }

 private:
  static constexpr std::uint32_t stale = PairRanks::none - 1;

  void join(std::uint32_t rank) {
    const auto joins = [&](std::size_t i) { return i < ranks_.size() && ranks_[i] == rank; };
    std::size_t out = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++out) {
      const bool joined = joins(i);
      const bool next_joined = !joined && joins(i + 1);
      tokens_[out] = joined ? pairs_.joined(rank) : tokens_[i];
      if (i < ranks_.size()) ranks_[out] = joined || next_joined ? stale : ranks_[i];
      i += joined ? 2 : 1;
    }
    tokens_.resize(out);
    ranks_.resize(out - 1);
  }

  void rank_stale() {
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i] == stale) ranks_[i] = pairs_.rank(tokens_[i], tokens_[i + 1]);
  }

  std::vector<std::int32_t>& tokens_;
  const PairRanks& pairs_;
  std::vector<std::uint32_t> ranks_;  ///< of tokens i and i + 1; stale where one of them is new
};

class Gpt2 final : public Tokenizer {
 public:
  Gpt2(Gpt2Vocabulary vocabulary, std::vector<Gpt2Merge> merges, Gpt2Words words)
      : vocabulary_(std::move(vocabulary)), pairs_(std::move(merges)), words_(std::move(words)) {}

  std::int64_t vocabulary() const override { return vocabulary_.size; }

  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const std::string& where) const override {
    std::vector<std::int32_t> tokens;
    std::unordered_map<std::string_view, std::vector<std::int32_t>> kept;
    TROUPE_TRY(words_.for_each(text, where, [&](std::string_view word) {
      auto found = kept.find(word);
      if (found == kept.end()) {
        auto of_word = encode_word(word);
        if (word.size() > longest_kept_word || kept.size() == most_kept_words) {
          tokens.insert(tokens.end(), of_word.begin(), of_word.end());
          return;
        }
        found = kept.emplace(word, std::move(of_word)).first;
      }
      tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    }));
    return tokens;
  }

  Result<std::string> decode(const std::vector<std::int64_t>& tokens) const override {
    std::string bytes;
    for (const auto token : tokens) {
      const auto found = token < 0 || token >= vocabulary_.size
                             ? vocabulary_.bytes.end()
                             : vocabulary_.bytes.find(static_cast<std::int32_t>(token));
      if (found == vocabulary_.bytes.end())
        return bad_input("tokens", "token " + std::to_string(token) + " is not in the vocabulary");
      bytes += found->second;
    }
    return bytes;
  }

 private:
  std::vector<std::int32_t> encode_word(std::string_view word) const {
    std::vector<std::int32_t> tokens;
    for (const char c : word) tokens.push_back(vocabulary_.of_byte[static_cast<unsigned char>(c)]);
    WordJoiner(tokens, pairs_).join_all();
    return tokens;
  }

  Gpt2Vocabulary vocabulary_;
  PairRanks pairs_;
  Gpt2Words words_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> open_gpt2_tokenizer(const v1::Gpt2Tokenizer& config) {
  TROUPE_ASSIGN(Gpt2Vocabulary vocabulary, Gpt2Vocabulary::read(config.vocab()));
  TROUPE_ASSIGN(auto merges, read_gpt2_merges(config.merges(), vocabulary));
  TROUPE_ASSIGN(Gpt2Words words, Gpt2Words::create());
  return std::unique_ptr<Tokenizer>(
      std::make_unique<Gpt2>(std::move(vocabulary), std::move(merges), std::move(words)));
}

}  // namespace troupe::mp
