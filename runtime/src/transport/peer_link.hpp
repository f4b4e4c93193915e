#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/link_bounds.hpp"
#include "core/link_sender.hpp"
#include "core/reassembler.hpp"
#include "transport/frame_codec.hpp"
#include "troupe/api.hpp"
#include "troupe/parcel.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// Both directions of the traffic with one peer: a sender and a reassembler for each class, and
/// the credit owed to the peer. A plain class; the endpoint moves what it returns.
class TROUPE_API PeerLink {
 public:
  explicit PeerLink(const LinkBounds& bounds);

  LinkSender& sender(TrafficClass traffic);

  /// Takes a chunk off the wire; its chunk credit is owed from now on, whether or not it
  /// completes its message: a message larger than the budget could not arrive otherwise.
  Result<std::optional<IncomingMessage>> accept(ChunkFrame frame);

  /// Admission credit that a local actor has returned.
  void owe_admission(TrafficClass traffic, const std::string& from, const std::string& to,
                     AdmissionUnit unit, std::uint64_t bytes);

  /// Credit that the peer has returned to us.
  Result<void> take_credit(const CreditFrame& credit);

  /// What is owed, summed up, and owed no longer.
  std::vector<CreditFrame> take_owed();

  /// Counters of the classes that were used.
  void append_status(const std::string& peer,
                     std::vector<runtime::v1::Status::LinkStatus>& status) const;

 private:
  using AdmissionKey = std::tuple<TrafficClass, std::string, std::string, AdmissionUnit>;

  LinkBounds bounds_;
  std::vector<LinkSender> senders_;        // by class
  std::vector<Reassembler> reassemblers_;  // by class
  std::array<std::uint64_t, traffic_class_count> owed_chunk_bytes_{};
  std::map<AdmissionKey, std::uint64_t> owed_admission_;
};

}  // namespace troupe
