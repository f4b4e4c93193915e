#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/stage_machine.hpp"
#include "core/value_ref.hpp"
#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/parcel.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// What a stage holds of a micro-batch: payloads until they are handed to the executor, and the
/// receipts that keep the senders' credit.
struct HeldMicroBatch {
  MicroBatch micro_batch;
  std::uint32_t micro_batches = 0;  ///< in its step
  AdmissionUnit unit = 0;
  std::vector<Value> values;         ///< by inbound
  std::vector<bool> wants_gradient;  ///< by inbound
  std::vector<Value> gradients;      ///< by outbound
  std::vector<std::shared_ptr<Receipt>> value_receipts;
  std::vector<std::shared_ptr<Receipt>> gradient_receipts;
};

/// Resolves the values that messages name and keeps what belongs to each micro-batch. Which of it
/// may be used when is the StageMachine's business.
class StageInbox {
 public:
  explicit StageInbox(const v1::StageConfig& config);

  /// Index of an inbound value; an error names a value that this stage does not read, or that
  /// comes from somebody else than its producer.
  Result<std::size_t> find_inbound(const v1::ValueRef& value, const ActorAddress& from) const;

  /// Index of an outbound value; an error names a value that this stage does not send, or that goes
  /// to somebody else than the sender of this gradient.
  Result<std::size_t> find_outbound(const v1::ValueRef& value, const ActorAddress& from) const;

  /// Keeps a value that the machine has accepted; an error if what the message says about its
  /// micro-batch differs from what an earlier one said.
  Result<void> keep_value(const MicroBatchKey& key, std::size_t inbound, const v1::Forward& header,
                          Value value, const Delivery& delivery);

  /// Keeps a gradient that the machine has accepted.
  void keep_gradient(const MicroBatchKey& key, std::size_t outbound, Value gradient,
                     const Delivery& delivery);

  /// The micro-batch must be there.
  HeldMicroBatch& at(const MicroBatchKey& key) { return held_.at(key); }
  /// Forgets it and returns all its credit.
  void release(const MicroBatchKey& key) { held_.erase(key); }
  void clear() { held_.clear(); }

 private:
  struct Inbound {
    std::size_t index = 0;
    bool has_producer = false;
    ActorAddress producer;
  };
  struct Outbound {
    std::size_t index = 0;
    ActorAddress reader;
  };

  std::map<ValueKey, Inbound> inbound_;
  std::map<ValueKey, Outbound> outbound_;
  std::map<MicroBatchKey, HeldMicroBatch> held_;
};

}  // namespace troupe::mp
