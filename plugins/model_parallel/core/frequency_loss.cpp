#include "core/frequency_loss.hpp"

#include <cmath>

namespace troupe::mp {

double frequency_loss(const std::vector<std::uint64_t>& training,
                      const std::vector<std::uint64_t>& held_out) {
  double total = static_cast<double>(training.size());
  for (const std::uint64_t count : training) total += static_cast<double>(count);
  double sum = 0;
  double counted = 0;
  for (std::size_t i = 0; i < training.size(); ++i) {
    const double probability = (static_cast<double>(training[i]) + 1) / total;
    sum -= static_cast<double>(held_out[i]) * std::log(probability);
    counted += static_cast<double>(held_out[i]);
  }
  return counted == 0 ? 0 : sum / counted;
}

}  // namespace troupe::mp
