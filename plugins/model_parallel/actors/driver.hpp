#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>

#include "actors/data_actor.hpp"
#include "actors/pipeline_client.hpp"
#include "core/learning_rate.hpp"
#include "core/numerics.hpp"
#include "core/plan.hpp"
#include "troupe/result.hpp"
#include "troupe/session.hpp"

namespace troupe::mp {

struct DriverOptions {
  v1::Schedule schedule = v1::SCHEDULE_ONE_F_ONE_B;
  std::vector<LearningRate> learning_rates;  ///< by group of parameters; none: no training
  double clip_grad_norm = 0;
  std::uint64_t batches_in_step = 1;  ///< of training; see StepBatches
  bool wait_for_driver = false;       ///< steps are decided by PipelineClient::apply_step
  /// Announce stages that differ in what decides the bits of results, instead of refusing them.
  bool allow_mixed_numerics = false;
  std::map<v1::Key::Kind, FeedConfig> feeds;
};

/// A plan brought to life: the stages on the session's nodes, and the pipeline, optimizer and data
/// actors in this process. Destroying it ends the actors of this process; the stages end with the
/// session. The session must outlive it.
class Driver {
 public:
  static Result<std::unique_ptr<Driver>> start(JobSession& session, const Plan& plan,
                                               DriverOptions options);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  PipelineClient& pipeline() { return *client_; }

  /// What computes each stage.
  const std::vector<StageNumerics>& numerics() const { return numerics_; }

  /// Replaces parameters and buffers on the stages that own them; see split_state.
  Result<void> load_state(const TensorMap& tensors, bool complete, const std::string& where);

 private:
  Driver(JobSession& session, const Plan& plan);
  void spawn_local_actors(DriverOptions options);
  Result<void> spawn_stages();
  Result<void> wait_until_ready();
  Result<void> check_numerics(bool allow_mixed) const;

  JobSession& session_;
  Plan plan_;
  caf::actor data_;
  caf::actor optimizer_;
  caf::actor pipeline_;
  std::unique_ptr<PipelineClient> client_;
  std::vector<StageNumerics> numerics_;
};

}  // namespace troupe::mp
