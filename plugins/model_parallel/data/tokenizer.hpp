#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/model_parallel/v1/data.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

namespace v1 = ::troupe::model_parallel::v1;

/// Turns bytes into tokens and back: `decode(encode(text))` is the text. Immutable, so that several
/// threads may share it.
class Tokenizer {
 public:
  virtual ~Tokenizer();

  /// Tokens are numbers from 0 to below this.
  virtual std::int64_t vocabulary() const = 0;

  /// The tokens of a text. `where` names it in errors.
  virtual Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                   const std::string& where) const = 0;

  /// The bytes of tokens, which need not be whole characters. An unknown token is an error.
  virtual Result<std::string> decode(const std::vector<std::int64_t>& tokens) const = 0;
};

/// Reads the tokenizer's files. `where` is the path of its message in the config.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const v1::Tokenizer& config,
                                                  const std::string& where);

}  // namespace troupe::mp
