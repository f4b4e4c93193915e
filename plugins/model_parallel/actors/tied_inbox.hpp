#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "troupe/model_parallel/executor.hpp"
#include "troupe/model_parallel/v1/plan.pb.h"
#include "troupe/parcel.hpp"
#include "troupe/result.hpp"

namespace troupe::mp {

/// Resolves what messages about tied parameters name, and keeps what they bring until it is handed
/// to the executor. Receipts go back once that is done with it. Which of it may be used when is the
/// StageMachine's business.
class TiedInbox {
 public:
  explicit TiedInbox(const v1::StageConfig& config);

  /// How many gradients other stages send after each step's backwards, and values after its update.
  std::size_t gradients() const { return uses_.size(); }
  std::size_t values() const { return copies_.size(); }

  /// Index of a use in another stage, or of a copy; an error names what this stage has nothing to
  /// do with, or what comes from somebody else.
  Result<std::size_t> find_use(const std::string& parameter, const ActorAddress& from) const;
  Result<std::size_t> find_copy(const std::string& owner, const ActorAddress& from) const;

  /// Keep what the machine has accepted.
  void keep_gradient(std::uint64_t step, std::size_t use, Value gradient, const Delivery& delivery);
  void keep_value(std::size_t copy, Value value, const Delivery& delivery);

  /// All gradients of a step, by use.
  std::vector<Value> take_gradients(std::uint64_t step);
  /// The new values under the names of the parameters here.
  std::vector<NamedTensor> take_values();

  /// The executor has what was taken last: returns the credit.
  void release() { taken_.clear(); }
  void clear();

 private:
  using Receipts = std::vector<std::shared_ptr<Receipt>>;

  struct Place {
    std::size_t index = 0;
    ActorAddress peer;
  };
  struct Gradients {
    std::vector<Value> values;  // by use
    Receipts receipts;
  };

  std::map<std::string, Place> uses_;                  // by parameter
  std::map<std::string, Place> copies_;                // by owner
  std::vector<std::string> names_;                     // by copy: the first use here
  std::map<std::uint64_t, Gradients> held_gradients_;  // by step
  std::vector<Value> held_values_;                     // by copy
  Receipts value_receipts_;
  Receipts taken_;
};

}  // namespace troupe::mp
