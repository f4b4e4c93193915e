#pragma once

#include <string>
#include <vector>

#include "troupe/blob.hpp"
#include "troupe/model_parallel/v1/data.pb.h"
#include "troupe/result.hpp"

namespace troupe::mp {

namespace v1 = ::troupe::model_parallel::v1;

/// Text without a border in it: a file, or its part on one side of the held-out part.
struct TextPiece {
  std::string where;  ///< the file and, for a part of it, its bytes
  Blob bytes;
};

/// The pieces of the side that the config asks for, the files mapped. The two sides of one config
/// share no byte. With `whole_characters`, a border inside a character of UTF-8 moves to the next
/// one, for both sides alike. `where` is the path of the message in the config.
Result<std::vector<TextPiece>> text_pieces(const v1::TextData& config, bool whole_characters,
                                           const std::string& where);

}  // namespace troupe::mp
