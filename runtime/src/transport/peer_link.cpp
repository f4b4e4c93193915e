#include "transport/peer_link.hpp"

namespace troupe {
namespace {

std::size_t index_of(TrafficClass traffic) { return static_cast<std::size_t>(traffic); }

}  // namespace

PeerLink::PeerLink(const LinkBounds& bounds) : bounds_(bounds) {
  for (int i = 0; i < traffic_class_count; ++i) {
    senders_.emplace_back(bounds, static_cast<TrafficClass>(i) != TrafficClass::control);
    reassemblers_.emplace_back(bounds);
  }
}

LinkSender& PeerLink::sender(TrafficClass traffic) { return senders_[index_of(traffic)]; }

Result<std::optional<IncomingMessage>> PeerLink::accept(ChunkFrame frame) {
  const std::size_t index = index_of(frame.traffic);
  owed_chunk_bytes_[index] += wire_bytes(frame.chunk);
  return reassemblers_[index].accept(std::move(frame.chunk));
}

void PeerLink::owe_admission(TrafficClass traffic, const std::string& from, const std::string& to,
                             AdmissionUnit unit, std::uint64_t bytes) {
  owed_admission_[AdmissionKey(traffic, from, to, unit)] += bytes;
}

Result<void> PeerLink::take_credit(const CreditFrame& credit) {
  LinkSender& link = sender(credit.traffic);
  if (credit.chunk_bytes != 0) TROUPE_TRY(link.return_chunk_credit(credit.chunk_bytes));
  if (credit.admission_bytes != 0) {
    TROUPE_TRY(
        link.return_admission_credit(credit.from, credit.to, credit.unit, credit.admission_bytes));
  }
  return {};
}

std::vector<CreditFrame> PeerLink::take_owed() {
  std::vector<CreditFrame> credits;
  for (auto& [key, bytes] : owed_admission_) {
    const auto& [traffic, from, to, unit] = key;
    credits.push_back({traffic, 0, bytes, from, to, unit});
  }
  owed_admission_.clear();
  for (int i = 0; i < traffic_class_count; ++i) {
    if (owed_chunk_bytes_[i] == 0) continue;
    credits.push_back({static_cast<TrafficClass>(i), owed_chunk_bytes_[i], 0, {}, {}, 0});
    owed_chunk_bytes_[i] = 0;
  }
  return credits;
}

void PeerLink::append_status(const std::string& peer,
                             std::vector<runtime::v1::Status::LinkStatus>& status) const {
  for (int i = 0; i < traffic_class_count; ++i) {
    const LinkSender::Counters counters = senders_[i].counters();
    if (counters.messages == 0 && counters.queued_messages == 0) continue;
    runtime::v1::Status::LinkStatus link;
    link.set_peer(peer);
    link.set_traffic(i);
    link.set_messages(counters.messages);
    link.set_bytes(counters.bytes);
    link.set_bytes_in_flight(counters.bytes_in_flight);
    link.set_peak_bytes_in_flight(counters.peak_bytes_in_flight);
    link.set_queued_messages(counters.queued_messages);
    link.set_peak_admission_bytes(counters.peak_admission_bytes);
    link.set_chunk_budget_bytes(bounds_.chunk_budget);
    link.set_admission_budget_bytes(bounds_.admission_budget);
    status.push_back(std::move(link));
  }
}

}  // namespace troupe
