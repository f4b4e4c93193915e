#include "actors/stage_inbox.hpp"

#include <algorithm>
#include <utility>

#include "actors/protocol.hpp"

namespace troupe::mp {
namespace {

Value absent_value() {
  Value value;
  value.absent = true;
  return value;
}

}  // namespace

std::string describe_value(const v1::ValueRef& value) {
  if (value.layer().empty()) return "field \"" + value.field() + "\"";
  return "output " + std::to_string(value.slot()) + " of layer \"" + value.layer() + "\"";
}

StageInbox::ValueKey StageInbox::key_of(const v1::ValueRef& value) {
  return {value.layer(), value.slot(), value.field()};
}

StageInbox::StageInbox(const v1::StageConfig& config) {
  for (const auto& inbound : config.inbound()) {
    const auto index = inbound_.size();
    inbound_[key_of(inbound.value())] = {index, inbound.has_producer(),
                                         to_address(inbound.producer())};
  }
  for (const auto& outbound : config.outbound()) {
    Outbound entry;
    entry.index = readers_.size();
    for (const auto& reader : outbound.readers()) entry.readers.push_back(to_address(reader));
    readers_.push_back(entry.readers.size());
    outbound_[key_of(outbound.value())] = std::move(entry);
  }
}

Result<std::size_t> StageInbox::find_inbound(const v1::ValueRef& value,
                                             const ActorAddress& from) const {
  const auto found = inbound_.find(key_of(value));
  if (found == inbound_.end())
    return internal_error(to_string(from),
                          "sent " + describe_value(value) + ", which this stage does not read");
  if (found->second.has_producer && found->second.producer != from)
    return internal_error(to_string(from), "sent " + describe_value(value) + ", which comes from " +
                                               to_string(found->second.producer));
  return found->second.index;
}

Result<std::pair<std::size_t, std::size_t>> StageInbox::find_outbound(
    const v1::ValueRef& value, const ActorAddress& from) const {
  const auto found = outbound_.find(key_of(value));
  if (found == outbound_.end())
    return internal_error(to_string(from), "sent a gradient of " + describe_value(value) +
                                               ", which this stage does not send");
  const auto& readers = found->second.readers;
  const auto reader = std::find(readers.begin(), readers.end(), from);
  if (reader == readers.end())
    return internal_error(to_string(from), "sent a gradient of " + describe_value(value) +
                                               ", which it does not read");
  return std::pair(found->second.index, static_cast<std::size_t>(reader - readers.begin()));
}

Result<void> StageInbox::keep_value(const MicroBatchKey& key, std::size_t inbound,
                                    const v1::Forward& header, Value value,
                                    const Delivery& delivery) {
  const auto [place, added] = held_.try_emplace(key);
  auto& held = place->second;
  if (added) {
    held.micro_batch = {
        key.kind, key.step, key.index, header.samples(), header.first_sample(), header.weight()};
    held.micro_batches = header.micro_batches();
    held.unit = delivery.unit;
    held.values.resize(inbound_.size(), absent_value());
    held.wants_gradient.resize(inbound_.size());
    for (const auto readers : readers_) held.gradients.emplace_back(readers, absent_value());
  }
  const auto& known = held.micro_batch;
  if (known.samples != header.samples() || known.first_sample != header.first_sample() ||
      known.weight != header.weight())
    return internal_error(to_string(key), "two messages disagree about its samples or weight");
  held.wants_gradient[inbound] = value.requires_grad;
  held.values[inbound] = std::move(value);
  held.value_receipts.push_back(delivery.receipt);
  return {};
}

void StageInbox::keep_gradient(const MicroBatchKey& key, std::size_t outbound, std::size_t reader,
                               Value gradient, const Delivery& delivery) {
  auto& held = held_.at(key);
  held.gradients[outbound][reader] = std::move(gradient);
  held.gradient_receipts.push_back(delivery.receipt);
}

}  // namespace troupe::mp
