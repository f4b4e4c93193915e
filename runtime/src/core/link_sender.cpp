#include "core/link_sender.hpp"

#include <algorithm>

namespace troupe {

LinkSender::LinkSender(const LinkBounds& bounds, bool admission)
    : bounds_(bounds), admission_(admission), chunk_credit_(bounds.chunk_budget) {
  // As LinkLimits.chunk_bytes documents: so that a chunk fits into the budget together with its
  // plugin header.
  bounds_.chunk_bytes =
      std::max<std::uint64_t>(1, std::min(bounds.chunk_bytes, bounds.chunk_budget / 2));
}

void LinkSender::enqueue(OutgoingMessage message) {
  const FlowKey key(message.from, message.to);
  auto flow = flows_.find(key);
  if (flow == flows_.end())
    flow = flows_.emplace(key, Flow{{}, AdmissionAccount(bounds_.admission_budget)}).first;
  flow->second.queue.push_back({next_order_++, std::move(message)});
  ++queued_;
}

LinkSender::Flow* LinkSender::oldest_admissible_flow() {
  // A linear search: a link and class has as many flows as pairs of actors, a few.
  Flow* oldest = nullptr;
  for (auto& [key, flow] : flows_) {
    if (flow.queue.empty()) continue;
    const OutgoingMessage& head = flow.queue.front().message;
    if (admission_ && !flow.account.admits(head.payload.size(), head.unit)) continue;
    if (oldest == nullptr || flow.queue.front().order < oldest->queue.front().order) oldest = &flow;
  }
  return oldest;
}

OutgoingMessage LinkSender::take_from(Flow& flow) {
  OutgoingMessage message = std::move(flow.queue.front().message);
  flow.queue.pop_front();
  --queued_;
  ++messages_;
  if (admission_) {
    flow.account.take(message.payload.size(), message.unit);
    peak_admission_ = std::max(peak_admission_, flow.account.peak());
  }
  if (flow.queue.empty() && flow.account.held() == 0) flows_.erase({message.from, message.to});
  return message;
}

std::optional<Chunk> LinkSender::next_chunk() {
  if (!begun_) {
    Flow* flow = oldest_admissible_flow();
    if (flow == nullptr) return std::nullopt;
    // The first chunk's credit is checked before the flow is charged: a message that cannot start
    // holds no admission credit.
    const OutgoingMessage& head = flow->queue.front().message;
    const std::uint64_t first =
        head.header.size() + std::min<std::uint64_t>(head.payload.size(), bounds_.chunk_bytes);
    if (!chunk_credit_.admits(first)) return std::nullopt;
    const std::uint64_t number = messages_;
    begun_ = Begun{take_from(*flow), number, 0};
  }
  Chunk chunk = cut_next_piece();
  const std::uint64_t cost = wire_bytes(chunk);
  if (!chunk_credit_.admits(cost)) return std::nullopt;
  chunk_credit_.take(cost);
  bytes_ += cost;
  begun_->offset += chunk.piece.size();
  if (begun_->offset == begun_->message.payload.size()) begun_.reset();
  return chunk;
}

Chunk LinkSender::cut_next_piece() const {
  const OutgoingMessage& message = begun_->message;
  const std::uint64_t left = message.payload.size() - begun_->offset;
  Chunk chunk;
  chunk.message = begun_->number;
  chunk.offset = begun_->offset;
  chunk.piece = message.payload.slice(begun_->offset, std::min(left, bounds_.chunk_bytes));
  if (begun_->offset == 0) {
    chunk.opening =
        Opening{message.from, message.to, message.payload.size(), message.unit, message.header};
  }
  return chunk;
}

std::optional<OutgoingMessage> LinkSender::next_message() {
  Flow* flow = oldest_admissible_flow();
  if (flow == nullptr) return std::nullopt;
  OutgoingMessage message = take_from(*flow);
  bytes_ += message.header.size() + message.payload.size();
  return message;
}

Result<void> LinkSender::return_chunk_credit(std::uint64_t bytes) {
  if (!chunk_credit_.give_back(bytes)) {
    return cluster_error("", "chunk credit of " + std::to_string(bytes) +
                                 " bytes returned where only " +
                                 std::to_string(chunk_credit_.in_flight()) + " are in flight");
  }
  return {};
}

Result<void> LinkSender::return_admission_credit(const std::string& from, const std::string& to,
                                                 AdmissionUnit unit, std::uint64_t bytes) {
  const auto flow = flows_.find({from, to});
  if (flow == flows_.end() || !flow->second.account.give_back(bytes, unit)) {
    return cluster_error("", "admission credit of " + std::to_string(bytes) + " bytes of unit " +
                                 std::to_string(unit) + " returned for " + from + " -> " + to +
                                 ", which does not hold as much");
  }
  if (flow->second.queue.empty() && flow->second.account.held() == 0) flows_.erase(flow);
  return {};
}

LinkSender::Counters LinkSender::counters() const {
  Counters counters;
  counters.messages = messages_;
  counters.bytes = bytes_;
  counters.bytes_in_flight = chunk_credit_.in_flight();
  counters.peak_bytes_in_flight = chunk_credit_.peak();
  counters.queued_messages = queued_ + (begun_ ? 1 : 0);
  counters.peak_admission_bytes = peak_admission_;
  return counters;
}

}  // namespace troupe
