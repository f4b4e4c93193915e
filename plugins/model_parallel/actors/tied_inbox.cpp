#include "actors/tied_inbox.hpp"

#include <utility>

#include "actors/protocol.hpp"
#include "core/value_ref.hpp"

namespace troupe::mp {

TiedInbox::TiedInbox(const v1::StageConfig& config) {
  for (const auto& weight : config.tied_weights())
    for (const auto& use : weight.uses())
      if (use.has_stage()) uses_[use.parameter()] = {uses_.size(), to_address(use.stage())};
  for (const auto& copy : config.tied_copies()) {
    copies_[copy.owner()] = {copies_.size(), to_address(copy.owner_stage())};
    names_.push_back(copy.uses(0));
  }
  held_values_.resize(copies_.size(), absent_value());
}

Result<std::size_t> TiedInbox::find_use(const std::string& parameter,
                                        const ActorAddress& from) const {
  const auto found = uses_.find(parameter);
  if (found == uses_.end() || found->second.peer != from)
    return internal_error(to_string(from), "sent a gradient of \"" + parameter +
                                               "\", which is not tied to a weight of this stage");
  return found->second.index;
}

Result<std::size_t> TiedInbox::find_copy(const std::string& owner, const ActorAddress& from) const {
  const auto found = copies_.find(owner);
  if (found == copies_.end() || found->second.peer != from)
    return internal_error(to_string(from), "sent values of \"" + owner +
                                               "\", which no weight of this stage is tied to");
  return found->second.index;
}

void TiedInbox::keep_gradient(std::uint64_t step, std::size_t use, Value gradient,
                              const Delivery& delivery) {
  auto& held = held_gradients_[step];
  held.values.resize(uses_.size(), absent_value());
  held.values[use] = std::move(gradient);
  held.receipts.push_back(delivery.receipt);
}

void TiedInbox::keep_value(std::size_t copy, Value value, const Delivery& delivery) {
  held_values_[copy] = std::move(value);
  value_receipts_.push_back(delivery.receipt);
}

std::vector<Value> TiedInbox::take_gradients(std::uint64_t step) {
  auto held = held_gradients_.extract(step);
  taken_ = std::move(held.mapped().receipts);
  return std::move(held.mapped().values);
}

std::vector<NamedTensor> TiedInbox::take_values() {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < held_values_.size(); ++i)
    tensors.push_back({names_[i], std::exchange(held_values_[i], absent_value()).tensor, false});
  taken_ = std::exchange(value_receipts_, {});
  return tensors;
}

void TiedInbox::clear() {
  held_gradients_.clear();
  held_values_.clear();
  value_receipts_.clear();
  taken_.clear();
}

}  // namespace troupe::mp
