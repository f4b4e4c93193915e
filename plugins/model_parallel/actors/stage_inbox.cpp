#include "actors/stage_inbox.hpp"

#include <utility>

#include "actors/protocol.hpp"

namespace troupe::mp {
StageInbox::StageInbox(const v1::StageConfig& config) {
  for (const auto& inbound : config.inbound()) {
    const auto index = inbound_.size();
    inbound_[key_of(inbound.value())] = {index, inbound.has_producer(),
                                         to_address(inbound.producer())};
  }
  for (const auto& outbound : config.outbound())
    outbound_[key_of(outbound.value())] = {outbound_.size(), to_address(outbound.reader())};
}

Result<std::size_t> StageInbox::find_inbound(const v1::ValueRef& value,
                                             const ActorAddress& from) const {
  const auto found = inbound_.find(key_of(value));
  if (found == inbound_.end())
    return internal_error(to_string(from),
                          "sent " + describe(value) + ", which this stage does not read");
  if (found->second.has_producer && found->second.producer != from)
    return internal_error(to_string(from), "sent " + describe(value) + ", which comes from " +
                                               to_string(found->second.producer));
  return found->second.index;
}

Result<std::size_t> StageInbox::find_outbound(const v1::ValueRef& value,
                                              const ActorAddress& from) const {
  const auto found = outbound_.find(key_of(value));
  if (found == outbound_.end())
    return internal_error(to_string(from), "sent a gradient of " + describe(value) +
                                               ", which this stage does not send");
  if (found->second.reader != from)
    return internal_error(to_string(from),
                          "sent a gradient of " + describe(value) + ", which it does not get here");
  return found->second.index;
}

Result<void> StageInbox::keep_value(const MicroBatchKey& key, std::size_t inbound,
                                    const v1::Forward& header, Value value,
                                    const Delivery& delivery) {
  const auto [place, added] = held_.try_emplace(key);
  auto& held = place->second;
  if (added) {
    held.micro_batch = {
        key.kind,        key.step,        key.index, header.samples(), header.first_sample(),
        header.weight(), header.counted()};
    held.micro_batches = header.micro_batches();
    held.unit = delivery.unit;
    held.values.resize(inbound_.size(), absent_value());
    held.wants_gradient.resize(inbound_.size());
    held.gradients.resize(outbound_.size(), absent_value());
  }
  const auto& known = held.micro_batch;
  if (known.samples != header.samples() || known.first_sample != header.first_sample() ||
      known.weight != header.weight() || known.counted != header.counted())
    return internal_error(to_string(key), "two messages disagree about its samples or weight");
  held.wants_gradient[inbound] = value.requires_grad;
  held.values[inbound] = std::move(value);
  held.value_receipts.push_back(delivery.receipt);
  return {};
}

void StageInbox::keep_gradient(const MicroBatchKey& key, std::size_t outbound, Value gradient,
                               const Delivery& delivery) {
  auto& held = held_.at(key);
  held.gradients[outbound] = std::move(gradient);
  held.gradient_receipts.push_back(delivery.receipt);
}

}  // namespace troupe::mp
