#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/admission_account.hpp"
#include "core/byte_credit.hpp"
#include "core/chunk.hpp"
#include "core/link_bounds.hpp"
#include "troupe/api.hpp"
#include "troupe/result.hpp"

namespace troupe {

/// A parcel without its route: what waits on a link.
struct OutgoingMessage {
  std::string from;
  std::string to;
  AdmissionUnit unit = 0;
  std::string header;
  Blob payload;
};

/// The sending half of one class of traffic to one peer.
///
/// Messages of one flow (sending actor, receiving actor) leave in the order in which they were
/// enqueued. A flow without admission credit does not hold up the others. A message, once begun,
/// is sent to its end before the next begins, so a receiver reassembles one message at a time.
///
/// Who gives credit back: chunk credit comes from the receiving endpoint when it has placed a
/// chunk, also in the middle of a message, or one larger than the budget could never arrive.
/// Admission credit comes from the receiving actor when it destroys the Receipt.
///
/// The queue itself has no bound of its own: its senders have windows (see Mailer).
class TROUPE_API LinkSender {
 public:
  struct Counters {
    std::uint64_t messages = 0;  ///< begun
    std::uint64_t bytes = 0;     ///< sent: headers and payloads
    std::uint64_t bytes_in_flight = 0;
    std::uint64_t peak_bytes_in_flight = 0;
    std::uint64_t queued_messages = 0;
    std::uint64_t peak_admission_bytes = 0;  ///< of the flow that held most
  };

  /// Without `admission` (control traffic) only chunk credit counts.
  LinkSender(const LinkBounds& bounds, bool admission);

  void enqueue(OutgoingMessage message);

  /// The next chunk that may be sent now, already charged; nothing when all is sent or waits for
  /// credit.
  std::optional<Chunk> next_chunk();

  /// The next message that may be handed over whole, charged to admission only: for parcels that
  /// stay on this node. Not to be mixed with `next_chunk` on one sender.
  std::optional<OutgoingMessage> next_message();

  /// Errors: the peer returned more than it was given.
  Result<void> return_chunk_credit(std::uint64_t bytes);
  Result<void> return_admission_credit(const std::string& from, const std::string& to,
                                       AdmissionUnit unit, std::uint64_t bytes);

  Counters counters() const;

 private:
  using FlowKey = std::pair<std::string, std::string>;

  struct Queued {
    std::uint64_t order;
    OutgoingMessage message;
  };

  struct Flow {
    std::deque<Queued> queue;
    AdmissionAccount account;
  };

  struct Begun {
    OutgoingMessage message;
    std::uint64_t number;
    std::uint64_t offset;
  };

  Flow* oldest_admissible_flow();
  OutgoingMessage take_from(Flow& flow);
  Chunk cut_next_piece() const;

  LinkBounds bounds_;
  bool admission_;
  ByteCredit chunk_credit_;
  std::map<FlowKey, Flow> flows_;  // no flow that is empty and holds nothing
  std::optional<Begun> begun_;
  std::uint64_t next_order_ = 0;
  std::uint64_t queued_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t peak_admission_ = 0;
};

}  // namespace troupe
