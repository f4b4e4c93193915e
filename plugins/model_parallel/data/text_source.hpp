#pragma once

#include <memory>

#include "data/data_source.hpp"

namespace troupe::mp {

/// Windows of tokens: "inputs" [samples, sequence_length] and "targets", the same shifted by one,
/// both int64. The tokenizer of bytes reads the mapped files batch by batch; GPT-2's encodes them
/// here, and its tokens stay in memory.
Result<std::unique_ptr<DataSource>> open_text(const v1::Data& data, const DataOptions& options);

}  // namespace troupe::mp
