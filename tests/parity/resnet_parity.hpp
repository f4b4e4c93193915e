#pragma once

#include <string>
#include <vector>

#include "parity/parity_case.hpp"

namespace troupe::mp::test {

/// SGD with these options.
Update update(double lr, double momentum = 0, double dampening = 0, double weight_decay = 0,
              bool nesterov = false);

/// Compares everything that Troupe computes for one of the runs with PyTorch, from the same weights
/// and data. float64 decides; float32 is judged by how far plain PyTorch's float32 is from its
/// float64, the worst of several runs that float32 cannot tell apart (see reference.py).
void check_parity(const Reference& reference, const std::string& update,
                  const std::vector<std::string>& cuts = {});

/// The reference for `runs`, kept until one for another object is asked for: test cases that share
/// one stand side by side.
const Reference& shared_reference(const ParityRuns& runs);

}  // namespace troupe::mp::test
