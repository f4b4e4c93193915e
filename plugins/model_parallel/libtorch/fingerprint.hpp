#pragma once

#include "troupe/runtime/v1/control.pb.h"

namespace troupe::mp::libtorch {

/// BLAS kernel and library versions, asked of the libraries that this process has loaded. Whatever
/// the environment wanted, this is what computes.
runtime::v1::NumericFingerprint process_fingerprint();

}  // namespace troupe::mp::libtorch
