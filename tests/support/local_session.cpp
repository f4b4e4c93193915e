#include "support/local_session.hpp"

#include <cstdlib>
#include <utility>

#include <caf/send.hpp>

#include "transport/endpoint.hpp"

namespace troupe::testing {
namespace {

std::vector<std::string> node_names(const runtime::v1::Job& job) {
  std::vector<std::string> names = {driver_node};
  for (const auto& node : job.nodes()) names.push_back(node.name());
  return names;
}

std::filesystem::path make_directory() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
  return mkdtemp(pattern.data());
}

}  // namespace

LocalSession::LocalSession(runtime::v1::Job job, Factories factories, SimulationOptions options)
    : job_(std::move(job)),
      factories_(std::move(factories)),
      directory_(make_directory()),
      cluster_(node_names(job_), std::move(options)) {
  for (const auto& node : job_.nodes()) {
    runtime::v1::NodeInfo info;
    info.set_name(node.name());
    nodes_.push_back(std::move(info));
  }
}

LocalSession::~LocalSession() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Result<void> LocalSession::spawn(const ActorAddress& address, const std::string& factory,
                                 const google::protobuf::Message& config,
                                 std::chrono::milliseconds timeout) {
  const auto found = factories_.find(factory);
  if (found == factories_.end()) return bad_input(factory, "no such factory");
  google::protobuf::Any any;
  any.PackFrom(config);
  ActorContext context{cluster_.system(), policy(), cluster_.mailer(address.node), address, "", {}};
  TROUPE_ASSIGN(const caf::actor actor, found->second(context, any));
  cluster_.bind(address.node, address.actor, actor);
  actors_[address] = actor;
  return {};
}

void LocalSession::subscribe(const caf::actor& observer) {
  observers_.push_back(observer);
  caf::anon_send(cluster_.endpoint(driver_node), Subscribe{observer});
}

void LocalSession::interrupt() {
  for (const auto& observer : observers_) caf::anon_send(observer, Interrupted{});
}

Result<std::filesystem::path> LocalSession::out_directory(const OutputFiles&) { return directory_; }

bool LocalSession::run_pending() {
  if (before_wait) before_wait(waits_++);
  cluster_.run_until_idle();
  return true;
}

runtime::v1::Job job_with_nodes(const std::vector<std::string>& nodes) {
  runtime::v1::Job job;
  job.set_name("test");
  for (const auto& node : nodes) job.add_nodes()->set_name(node);
  return job;
}

}  // namespace troupe::testing
