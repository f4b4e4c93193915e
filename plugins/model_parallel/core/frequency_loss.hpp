#pragma once

#include <cstdint>
#include <vector>

namespace troupe::mp {

/// The mean cross-entropy, in nats, of a model that knows nothing but how often each class is a
/// target in training: a class that occurs n times of N, among V classes, has the probability
/// (n + 1) / (N + V) (Laplace's rule of succession), so that one that never occurs has one too. The
/// mean is over the held-out targets. Both count by class and are of one size; 0 without held-out
/// targets.
double frequency_loss(const std::vector<std::uint64_t>& training,
                      const std::vector<std::uint64_t>& held_out);

}  // namespace troupe::mp
