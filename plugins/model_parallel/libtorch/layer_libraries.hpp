#pragma once

#include "libtorch/layer_kinds.hpp"
#include "troupe/model_parallel/executor.hpp"

namespace troupe::mp::libtorch {

/// Loads the libraries, which stay loaded, and adds their kinds, of all or of none. Errors
/// (bad_input) name the library: it is in none of the directories (lists those that are), cannot be
/// loaded, has no entry function, is of another ABI version, or adds a kind that exists.
Result<void> add_layer_libraries(const LayerLibraries& libraries, LayerKinds& kinds);

}  // namespace troupe::mp::libtorch
