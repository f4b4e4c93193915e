#include "support/simulation.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "transport/endpoint.hpp"
#include "transport/wire.hpp"

namespace troupe::testing {

using LinkKey = std::pair<std::string, std::string>;

/// The frames between all nodes: one queue for each ordered pair.
class SimulatedNetwork {
 public:
  struct Link {
    std::deque<std::pair<caf::actor, Frame>> frames;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t sent_bytes = 0;
    unsigned slowness = 1;
  };

  void send(const LinkKey& key, const caf::actor& to, Frame frame) {
    if (is_lost(key)) return;
    Link& link = links_[key];
    const std::uint64_t bytes = frame.header.size() + frame.payload.size();
    link.waiting_bytes += bytes;
    link.sent_bytes += bytes;
    link.peak_bytes = std::max(link.peak_bytes, link.waiting_bytes);
    link.frames.emplace_back(to, std::move(frame));
  }

  /// Links whose next frame may arrive now.
  std::vector<Link*> deliverable() {
    std::vector<Link*> result;
    for (auto& [key, link] : links_)
      if (!link.frames.empty() && frozen_.count(key.second) == 0) result.push_back(&link);
    return result;
  }

  static void deliver_one(Link& link) {
    auto [to, frame] = std::move(link.frames.front());
    link.frames.pop_front();
    link.waiting_bytes -= frame.header.size() + frame.payload.size();
    caf::anon_send(to, std::move(frame));
  }

  void kill(const std::string& node) {
    dead_.insert(node);
    drop_lost();
  }

  void cut(const LinkKey& key) {
    cut_.insert(key);
    drop_lost();
  }

  void freeze(const std::string& node) { frozen_.insert(node); }
  void thaw(const std::string& node) { frozen_.erase(node); }

  Link& link(const LinkKey& key) { return links_[key]; }

 private:
  bool is_lost(const LinkKey& key) const {
    return cut_.count(key) != 0 || dead_.count(key.first) != 0 || dead_.count(key.second) != 0;
  }

  void drop_lost() {
    for (auto& [key, link] : links_) {
      if (!is_lost(key)) continue;
      link.frames.clear();
      link.waiting_bytes = 0;
    }
  }

  std::map<LinkKey, Link> links_;
  std::set<std::string> dead_;
  std::set<std::string> frozen_;
  std::set<LinkKey> cut_;
};

/// One node's way into the network.
class SimulatedTransport : public Transport {
 public:
  SimulatedTransport(std::string node, std::shared_ptr<SimulatedNetwork> network)
      : node_(std::move(node)), network_(std::move(network)) {}

  void send(const std::string& to_node, const caf::actor& to, Frame frame) override {
    network_->send({node_, to_node}, to, std::move(frame));
  }

 private:
  std::string node_;
  std::shared_ptr<SimulatedNetwork> network_;
};

namespace {

constexpr std::chrono::milliseconds time_slice{50};

caf::behavior recorder(caf::event_based_actor*, std::shared_ptr<Observed> observed) {
  return {
      [observed](const NodeDown& down) { observed->down.push_back(down); },
      [observed](const RuntimeFailure& failure) { observed->failures.push_back(failure.error); },
  };
}

}  // namespace

class TestingConfig : public caf::actor_system_config {
 public:
  TestingConfig() {
    set("scheduler.policy", caf::atom("testing"));
    add_wire_types(*this);
  }
};

class SimulatedCluster::Impl {
 public:
  struct Node {
    caf::actor endpoint;
    Mailer mailer;
    std::vector<caf::actor> actors;  // those that die with it
    std::shared_ptr<Observed> observed;
  };

  explicit Impl(std::uint64_t seed)
      : system(config),
        scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())),
        random(seed) {}

  Node& node(const std::string& name) {
    const auto found = nodes.find(name);
    if (found == nodes.end()) throw std::runtime_error("no simulated node " + name);
    return found->second;
  }

  bool step() {
    const std::size_t jobs = scheduler.jobs.size();
    const auto links = network->deliverable();
    // What is drawn may be held up; then another one must have its chance, until none is left.
    if (idle_actors.empty() && actor_slowness.empty()) {
      if (jobs + links.size() == 0) return false;
      const std::size_t drawn = draw(jobs + links.size());
      if (drawn < jobs) return run_job(drawn);
      return deliver(*links[drawn - jobs]);
    }
    std::vector<std::size_t> runnable;
    for (std::size_t i = 0; i < jobs; ++i)
      if (idle_actors.count(actor_of(i)) == 0) runnable.push_back(i);
    if (runnable.size() + links.size() == 0) return false;
    const std::size_t drawn = draw(runnable.size() + links.size());
    if (drawn >= runnable.size()) return deliver(*links[drawn - runnable.size()]);
    const auto slow = actor_slowness.find(actor_of(runnable[drawn]));
    if (slow != actor_slowness.end() && draw(slow->second) != 0) return true;
    return run_job(runnable[drawn]);
  }

  TestingConfig config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::shared_ptr<SimulatedNetwork> network = std::make_shared<SimulatedNetwork>();
  std::map<std::string, Node> nodes;
  std::map<caf::actor_id, unsigned> actor_slowness;
  std::set<caf::actor_id> idle_actors;  // of frozen nodes

 private:
  std::size_t draw(std::size_t count) {
    // Not a distribution of the standard library: those differ between implementations.
    return static_cast<std::size_t>(random() % count);
  }

  caf::actor_id actor_of(std::size_t job) const {
    const auto* actor = dynamic_cast<caf::scheduled_actor*>(scheduler.jobs[job]);
    return actor == nullptr ? caf::invalid_actor_id : actor->id();
  }

  bool run_job(std::size_t job) {
    std::swap(scheduler.jobs.front(), scheduler.jobs[job]);
    return scheduler.try_run_once();
  }

  bool deliver(SimulatedNetwork::Link& link) {
    if (link.slowness > 1 && draw(link.slowness) != 0) return true;
    SimulatedNetwork::deliver_one(link);
    return true;
  }

  std::mt19937_64 random;
};

SimulatedCluster::SimulatedCluster(std::vector<std::string> nodes, SimulationOptions options)
    : impl_(std::make_unique<Impl>(options.seed)) {
  for (const auto& name : nodes) {
    EndpointConfig config;
    config.node = name;
    config.limits = options.limits;
    config.heartbeat = options.heartbeat;
    config.transport = std::make_shared<SimulatedTransport>(name, impl_->network);
    Impl::Node& node = impl_->nodes[name];
    node.endpoint = spawn_endpoint(system(), std::move(config));
    node.mailer = Mailer(name, node.endpoint);
    node.observed = std::make_shared<Observed>();
    const caf::actor observer = system().spawn(recorder, node.observed);
    node.actors = {node.endpoint, observer};
    caf::anon_send(node.endpoint, Subscribe{observer});
  }
  for (const auto& name : nodes)
    for (const auto& peer : nodes)
      if (peer != name) caf::anon_send(endpoint(name), AttachPeer{peer, endpoint(peer)});
  run_until_idle();
}

SimulatedCluster::~SimulatedCluster() {
  system().await_actors_before_shutdown(false);
  for (auto& [name, node] : impl_->nodes) {
    impl_->network->kill(name);
    for (const auto& actor : node.actors)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
  impl_->idle_actors.clear();
  impl_->actor_slowness.clear();
  run_until_idle();
  // No handle may outlive the system.
  impl_->nodes.clear();
}

caf::actor_system& SimulatedCluster::system() { return impl_->system; }

const Mailer& SimulatedCluster::mailer(const std::string& node) const {
  return impl_->node(node).mailer;
}

const caf::actor& SimulatedCluster::endpoint(const std::string& node) const {
  return impl_->node(node).endpoint;
}

void SimulatedCluster::host(const std::string& node, const caf::actor& actor) {
  impl_->node(node).actors.push_back(actor);
}

void SimulatedCluster::bind(const std::string& node, const std::string& name,
                            const caf::actor& actor) {
  host(node, actor);
  mailer(node).bind(name, actor);
}

bool SimulatedCluster::step() { return impl_->step(); }

void SimulatedCluster::run_until_idle(std::size_t max_steps) {
  for (std::size_t steps = 0; impl_->step(); ++steps)
    if (steps == max_steps) throw std::runtime_error("the simulation does not come to rest");
}

void SimulatedCluster::advance(std::chrono::milliseconds duration) {
  run_until_idle();
  while (duration.count() > 0) {
    const auto slice = std::min(duration, time_slice);
    impl_->scheduler.clock().advance_time(slice);
    run_until_idle();
    duration -= slice;
  }
}

void SimulatedCluster::kill(const std::string& node) {
  impl_->network->kill(node);
  // A frozen process can be killed too.
  thaw(node);
  for (const auto& actor : impl_->node(node).actors)
    caf::anon_send_exit(actor, caf::exit_reason::kill);
}

void SimulatedCluster::freeze(const std::string& node) {
  impl_->network->freeze(node);
  for (const auto& actor : impl_->node(node).actors) impl_->idle_actors.insert(actor.id());
}

void SimulatedCluster::thaw(const std::string& node) {
  impl_->network->thaw(node);
  for (const auto& actor : impl_->node(node).actors) impl_->idle_actors.erase(actor.id());
}

void SimulatedCluster::cut(const std::string& a, const std::string& b) {
  impl_->network->cut({a, b});
  impl_->network->cut({b, a});
}

void SimulatedCluster::slow_down(const caf::actor& actor, unsigned factor) {
  if (factor > 1)
    impl_->actor_slowness[actor.id()] = factor;
  else
    impl_->actor_slowness.erase(actor.id());
}

void SimulatedCluster::slow_down_link(const std::string& from, const std::string& to,
                                      unsigned factor) {
  impl_->network->link({from, to}).slowness = std::max(factor, 1U);
}

const Observed& SimulatedCluster::observed(const std::string& node) const {
  return *impl_->node(node).observed;
}

std::vector<runtime::v1::Status::LinkStatus> SimulatedCluster::link_status(
    const std::string& node) {
  std::vector<runtime::v1::Status::LinkStatus> links;
  caf::scoped_actor self(system());
  auto answer = self->request(endpoint(node), caf::infinite, GetLinkStatus{});
  run_until_idle();
  answer.receive([&](const LinkStatusList& status) { links = status.links; },
                 [](const caf::error&) {});
  return links;
}

std::uint64_t SimulatedCluster::bytes_in_transit(const std::string& from,
                                                 const std::string& to) const {
  return impl_->network->link({from, to}).waiting_bytes;
}

std::uint64_t SimulatedCluster::peak_bytes_in_transit(const std::string& from,
                                                      const std::string& to) const {
  return impl_->network->link({from, to}).peak_bytes;
}

std::uint64_t SimulatedCluster::bytes_sent(const std::string& from, const std::string& to) const {
  return impl_->network->link({from, to}).sent_bytes;
}

}  // namespace troupe::testing
