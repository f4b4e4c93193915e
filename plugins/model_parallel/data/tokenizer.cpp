#include "data/tokenizer.hpp"

#include "data/gpt2_tokenizer.hpp"

namespace troupe::mp {

namespace {

class BytesAsTokens final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }

  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const std::string&) const override {
    std::vector<std::int32_t> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }

  Result<std::string> decode(const std::vector<std::int64_t>& tokens) const override {
    std::string bytes;
    for (const auto token : tokens) {
      if (token < 0 || token >= vocabulary())
        return bad_input("tokens", "token " + std::to_string(token) + " is no byte");
      bytes += static_cast<char>(token);
    }
    return bytes;
  }
};

}  // namespace

Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const v1::Tokenizer& config,
                                                  const std::string& where) {
  switch (config.kind_case()) {
    case v1::Tokenizer::kBytes:
      return std::unique_ptr<Tokenizer>(std::make_unique<BytesAsTokens>());
    case v1::Tokenizer::kGpt2: return open_gpt2_tokenizer(config.gpt2());
    default: return bad_input(where, "no kind of tokenizer", "write bytes or gpt2");
  }
}

}  // namespace troupe::mp
