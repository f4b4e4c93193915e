#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "troupe/address.hpp"
#include "troupe/api.hpp"
#include "troupe/blob.hpp"

namespace troupe {

/// Traffic of one class between two nodes is ordered and shares one chunk budget. Classes do not
/// wait for each other's credit: a gradient never queues behind activations.
enum class TrafficClass : std::uint8_t {
  control = 0,     ///< small messages without admission credit
  activation = 1,  ///< forward values
  gradient = 2,    ///< backward values
  batch = 3,       ///< fields of a batch, from the data actor
  state = 4,       ///< weights, buffers, optimizer state
};
inline constexpr int traffic_class_count = 5;

/// "activation"; "unknown" for a number that is no class.
constexpr const char* to_string(TrafficClass traffic) {
  switch (traffic) {
    case TrafficClass::control: return "control";
    case TrafficClass::activation: return "activation";
    case TrafficClass::gradient: return "gradient";
    case TrafficClass::batch: return "batch";
    case TrafficClass::state: return "state";
  }
  return "unknown";
}

/// The admission unit of a parcel: parcels of one flow (sender, receiver, class) with the same
/// unit are admitted together, since a receiver needs all of them to make progress. Units of a
/// flow do not decrease; for a training job it is the micro-batch's running number.
using AdmissionUnit = std::uint64_t;

/// A message that a local actor hands to its node's endpoint: a small header of the plugin's own
/// (a serialized Protobuf message) and a payload of any size, also above 4 GiB.
struct Parcel {
  ActorAddress to;
  std::string from;  ///< name of the sending actor on this node
  TrafficClass traffic = TrafficClass::control;
  AdmissionUnit unit = 0;
  std::string header;
  Blob payload;
};

/// Proof that a delivered payload is still held. Destroying it returns the sender's admission
/// credit; keep it exactly as long as the payload's memory is used. May be destroyed on any
/// thread. Move-only.
class TROUPE_API Receipt {
 public:
  /// Called once, with the credit to return.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void release(std::uint64_t bytes, AdmissionUnit unit) = 0;
  };

  Receipt() = default;
  Receipt(std::shared_ptr<Sink> sink, std::uint64_t bytes, AdmissionUnit unit)
      : sink_(std::move(sink)), bytes_(bytes), unit_(unit) {}
  Receipt(Receipt&& other) noexcept = default;
  Receipt& operator=(Receipt&& other) noexcept {
    release();
    sink_ = std::move(other.sink_);
    bytes_ = other.bytes_;
    unit_ = other.unit_;
    return *this;
  }
  ~Receipt() { release(); }

  std::uint64_t bytes() const { return sink_ ? bytes_ : 0; }

  /// Returns the credit now; idempotent.
  void release() {
    if (auto sink = std::move(sink_)) sink->release(bytes_, unit_);
  }

 private:
  std::shared_ptr<Sink> sink_;
  std::uint64_t bytes_ = 0;
  AdmissionUnit unit_ = 0;
};

/// What the receiving actor gets: the parcel, reassembled. A local CAF message; copies share the
/// receipt.
struct Delivery {
  ActorAddress from;
  TrafficClass traffic = TrafficClass::control;
  AdmissionUnit unit = 0;
  std::string header;
  Blob payload;
  std::shared_ptr<Receipt> receipt;
};

}  // namespace troupe
