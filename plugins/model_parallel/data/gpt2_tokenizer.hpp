#pragma once

#include <memory>

#include "data/tokenizer.hpp"

namespace troupe::mp {

/// Byte-pair encoding (Sennrich et al., "Neural Machine Translation of Rare Words with Subword
/// Units", 2016) over bytes, with the words, the files and the results of OpenAI's encoder.py for
/// GPT-2. The file's special tokens ("<|endoftext|>") are decoded, but never found in a text.
///
/// Checked when opened: every byte has a token, no two tokens one number, and each merge joins two
/// tokens of the vocabulary to a third. Errors name the file, and the line of a merge.
Result<std::unique_ptr<Tokenizer>> open_gpt2_tokenizer(const v1::Gpt2Tokenizer& config);

}  // namespace troupe::mp
