#include "data/gpt2_words.hpp"

#include <array>

#include <pcre2.h>

namespace troupe::mp {

namespace {

// The published pattern is
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// where \s is Unicode's White_Space. PCRE2's own \s has one character more (U+180E), so the class
// is written out.
#define TROUPE_WHITE_SPACE                                                    \
  R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029})" \
  R"(\x{202F}\x{205F}\x{3000})"
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{L}\p{N})" TROUPE_WHITE_SPACE
    R"(]+|[)" TROUPE_WHITE_SPACE R"(]+(?![^)" TROUPE_WHITE_SPACE R"(])|[)" TROUPE_WHITE_SPACE
    R"(]+)";
#undef TROUPE_WHITE_SPACE

std::string pcre2_text(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

bool is_bad_utf8(int code) {
  return code <= PCRE2_ERROR_UTF8_ERR1 && code >= PCRE2_ERROR_UTF8_ERR21;
}

}  // namespace

struct Gpt2Words::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

Result<Gpt2Words> Gpt2Words::create() {
  auto pattern = std::make_shared<Pattern>();
  int fault = 0;
  PCRE2_SIZE position = 0;
  pattern->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(gpt2_pattern), PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &fault, &position, nullptr);
  if (pattern->code == nullptr) return internal_error("GPT-2 pattern", pcre2_text(fault));
  // Where machine code cannot be made, PCRE2 interprets the pattern.
  pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
  Gpt2Words words;
  words.pattern_ = std::move(pattern);
  return words;
}

Result<void> Gpt2Words::for_each(std::string_view text, const std::string& where,
                                 const std::function<void(std::string_view)>& take) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(pattern_->code, nullptr));
  if (!match) return internal_error(where, "no memory for PCRE2");
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  for (std::size_t begin = 0; begin < text.size();) {
    // The first match checks the whole text.
    const std::uint32_t options = begin == 0 ? 0 : PCRE2_NO_UTF_CHECK;
    const int code =
        pcre2_match(pattern_->code, subject, text.size(), begin, options, match.get(), nullptr);
    if (is_bad_utf8(code))
      return bad_input(where,
                       "byte " + std::to_string(pcre2_get_startchar(match.get())) +
                           " is not UTF-8: " + pcre2_text(code),
                       "convert it to UTF-8, or use the tokenizer of bytes");
    if (code < 0) return internal_error(where, "cannot find words: " + pcre2_text(code));
    const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
    take(text.substr(begin, end - begin));
    begin = end;
  }
  return {};
}

}  // namespace troupe::mp
