#include "actors/data_actor.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/batch_builder.hpp"
#include "actors/driver_messages.hpp"
#include "actors/postbox.hpp"
#include "core/batch_cut.hpp"
#include "core/plan.hpp"
#include "troupe/guard.hpp"

// A run passes through here as: OpenRun (cut it, answer RunOpened), then AdmitMicroBatch for each
// micro-batch in order. A micro-batch leaves once it is admitted and its batch is built; the batch
// is let go with its last micro-batch. Where the weights depend on the targets of the whole step,
// the first one leaves when all batches of the step are built. Memory: the batch in use, or those
// of the step; the feed's prefetch budget; and the rows of micro-batches that the pipeline's window
// lets be on their way.

namespace troupe::mp {
namespace {

struct Feed {
  FeedPlan plan;
  BatchFeed batches;
  std::uint32_t micro_batch_size = 1;
  caf::actor builder;
  std::uint64_t rewinds = 0;  // answers of builds begun before the last rewind are dropped
};

struct Run {
  v1::Key::Kind kind = v1::Key::KIND_TRAIN;
  std::uint64_t step = 0;
  BatchCut cut;
  std::uint64_t admitted = 0;
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;
  // Those that were taken, from the one that micro-batch `sent` belongs to.
  std::deque<Batch> batches;
  std::optional<RunCounts> counts;  // if the targets of all batches decide the weights
};

struct DataState {
  static inline const char* name = "data";

  explicit DataState(caf::stateful_actor<DataState>* self) : self(self) {}

  caf::stateful_actor<DataState>* self;
  DataActorConfig config;
  Postbox postbox;
  std::map<v1::Key::Kind, Feed> feeds;
  std::optional<Run> run;
  caf::actor pipeline;
  AdmissionUnit next_unit = 1;
  std::optional<Error> failure;

  void start(DataActorConfig c) {
    config = std::move(c);
    postbox = Postbox(config.mailer, data_actor);
    for (auto& [kind, feed_config] : config.feeds) {
      Feed feed;
      feed.plan = feed_config.plan;
      feed.batches = BatchFeed(feed.plan);
      feed.micro_batch_size = feed_config.micro_batch_size;
      feed.builder =
          spawn_batch_builder(self->system(), config.policy, std::move(feed_config.source));
      self->link_to(feed.builder);
      feeds.emplace(kind, std::move(feed));
    }
    config.feeds.clear();
    // Training begins with the first command, at the latest; its first batch can be built now.
    build_ahead(v1::Key::KIND_TRAIN);
  }

  /// A batch that is built ahead can fail before the pipeline is known; it hears of it then.
  void fail(Error error) {
    if (failure) return;
    failure = std::move(error);
    if (pipeline) self->send(pipeline, DriverFailure{*failure});
  }

  void open(const OpenRun& request) {
    remember_pipeline();
    const auto found = feeds.find(request.kind);
    if (found == feeds.end()) return fail(internal_error("data", "no feed for this kind of run"));
    Feed& feed = found->second;
    if (request.rewind) {
      feed.batches = BatchFeed(feed.plan);
      ++feed.rewinds;
    }
    if (feed.batches.remaining() == 0)
      return fail(internal_error("data", "the feed has no batch left"));
    const auto batches =
        feed.batches.in_one_epoch(std::min(request.batches, feed.batches.remaining()));
    std::uint64_t samples = 0;
    for (std::uint64_t i = 0; i < batches; ++i)
      samples += feed.batches.samples_in(feed.batches.position() + i);
    begin(request.kind, request.step,
          BatchCut(samples, feed.plan.batch_size, feed.micro_batch_size));
    // Elsewhere the weight is of no use: the losses are added by what counts.
    if (request.kind == v1::Key::KIND_TRAIN && config.count.depends_on_targets())
      run->counts.emplace();
    pump();
  }

  void open(const OpenSuppliedRun& request) {
    remember_pipeline();
    const auto samples = request.batch.samples;
    begin(request.kind, request.step, BatchCut(samples, samples, request.micro_batch_size));
    run->batches.push_back(request.batch);
  }

  void remember_pipeline() {
    if (pipeline) return;
    pipeline = caf::actor_cast<caf::actor>(self->current_sender());
    if (failure) self->send(pipeline, DriverFailure{*failure});
  }

  void begin(v1::Key::Kind kind, std::uint64_t step, const BatchCut& cut) {
    run.emplace();
    run->kind = kind;
    run->step = step;
    run->cut = cut;
    self->send(pipeline, RunOpened{step, static_cast<std::uint32_t>(cut.micro_batches())});
  }

  void admit(const AdmitMicroBatch& admitted) {
    if (!run || admitted.micro_batch != run->admitted || run->admitted == run->cut.micro_batches())
      return fail(internal_error(
          "data", "micro-batch " + std::to_string(admitted.micro_batch) + " admitted out of turn"));
    ++run->admitted;
    pump();
  }

  void pump() {
    if (failure) return;
    while (!failure && run && run->sent < run->admitted && has_batch()) send_next();
    if (run) build_ahead(run->kind);
  }

  bool has_batch() {
    if (run->counts) {
      while (run->taken < run->cut.batches() && take_batch()) count(run->batches.back());
      return run->taken == run->cut.batches();
    }
    return !run->batches.empty() || take_batch();
  }

  bool take_batch() {
    const auto found = feeds.find(run->kind);
    if (found == feeds.end() || !found->second.batches.has_ready()) return false;
    run->batches.push_back(found->second.batches.take());
    ++run->taken;
    return true;
  }

  /// Counts the micro-batches of the batch that was taken last.
  void count(const Batch& batch) {
    for (std::uint32_t begin = 0; begin < batch.samples;) {
      const auto rows = run->cut.rows_of(run->counts->size());
      run->counts->add(counted_in(batch, rows));
      begin = rows.end;
    }
  }

  std::uint64_t counted_in(const Batch& batch, const RowRange& rows) const {
    const auto targets = batch.fields.find("targets");
    const bool usable = targets != batch.fields.end() && !targets->second.shape.empty() &&
                        targets->second.shape[0] == batch.samples;
    if (!usable) return rows.size();  // whoever reads them hears of it when they are sent
    return config.count.in(targets->second.rows(rows.begin, rows.end));
  }

  /// Cuts the next micro-batch and sends its fields to their readers. [life:1]
  void send_next() {
    const Batch& batch = run->batches.front();
    const auto rows = run->cut.rows_of(run->sent);
    const auto unit = next_unit++;
    for (const auto& [field, readers] : config.readers) {
      const auto found = batch.fields.find(field);
      if (found == batch.fields.end())
        return fail(bad_input("data", "the data set has no \"" + field + "\""));
      const HostTensor& whole = found->second;
      if (whole.shape.empty() || whole.shape[0] != batch.samples)
        return fail(internal_error("data", "\"" + field + "\" of shape " + to_string(whole.shape) +
                                               " does not hold the batch's samples"));
      Value value;
      value.tensor = whole.rows(rows.begin, rows.end);
      const auto message = make_message(field, rows, value);
      for (const auto& reader : readers)
        postbox.send(reader, TrafficClass::batch, unit, message, value.tensor.data);
    }
    if (rows.end == batch.samples) run->batches.pop_front();
    ++run->sent;
  }

  v1::Message make_message(const std::string& field, const RowRange& rows,
                           const Value& value) const {
    v1::Message message;
    auto* key = message.mutable_key();
    key->set_job(config.job);
    key->set_generation(config.generation);
    key->set_kind(run->kind);
    key->set_step(run->step);
    key->set_micro_batch(static_cast<std::uint32_t>(run->sent));
    key->mutable_value()->set_field(field);
    auto* forward = message.mutable_forward();
    *forward->mutable_tensor() = make_header(value);
    forward->set_micro_batches(static_cast<std::uint32_t>(run->cut.micro_batches()));
    const Batch& batch = run->batches.front();
    forward->set_weight(run->counts ? run->counts->weight_of(run->sent)
                                    : run->cut.weight_of(run->sent));
    forward->set_counted(run->counts ? run->counts->counted(run->sent) : counted_in(batch, rows));
    forward->set_samples(rows.size());
    forward->set_first_sample(batch.first_sample + rows.begin);
    return message;
  }

  void build_ahead(v1::Key::Kind kind) {
    const auto found = feeds.find(kind);
    if (failure || found == feeds.end()) return;
    Feed& feed = found->second;
    const auto ref = feed.batches.begin_build();
    if (!ref) return;
    const auto rewinds = feed.rewinds;
    self->request(feed.builder, caf::infinite, BuildBatch{*ref, feed.plan.batch_size})
        .then([this, kind, rewinds](const BatchBuilt& built) { take(kind, rewinds, built); },
              [this](const caf::error&) {
                fail(internal_error("data", "the batch builder is gone"));
              });
  }

  void take(v1::Key::Kind kind, std::uint64_t rewinds, const BatchBuilt& built) {
    Feed& feed = feeds.at(kind);
    if (rewinds != feed.rewinds) return;
    if (built.error) return fail(*built.error);
    feed.batches.built(built.batch);
    build_ahead(kind);
    pump();
  }
};

caf::behavior data_behavior(caf::stateful_actor<DataState>* self, DataActorConfig config) {
  guard(*self);
  self->state.start(std::move(config));
  return {
      [self](const OpenRun& request) { self->state.open(request); },
      [self](const OpenSuppliedRun& request) { self->state.open(request); },
      [self](const AdmitMicroBatch& admitted) { self->state.admit(admitted); },
  };
}

}  // namespace

caf::actor spawn_data_actor(caf::actor_system& system, DataActorConfig config) {
  return system.spawn(data_behavior, std::move(config));
}

}  // namespace troupe::mp
