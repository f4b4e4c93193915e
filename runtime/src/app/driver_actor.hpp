#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "core/run_key.hpp"
#include "troupe/api.hpp"
#include "troupe/messages.hpp"
#include "troupe/result.hpp"
#include "troupe/runtime/v1/control.pb.h"

namespace troupe {

/// An answer to a control request; `endpoint` is set by a hello only.
struct ControlAnswer {
  runtime::v1::Response response;
  caf::strong_actor_ptr endpoint;
};

/// One control request on its way, and the promise of whoever waits for it.
struct ControlCall {
  std::string who;   ///< the called node, for errors: "node b", "launcher 192.0.2.7:7856"
  std::string node;  ///< its name in the job; NodeDown of it ends the call. Empty: a launcher,
                     ///< whose own loss ends the call
  caf::actor target;
  runtime::v1::Request request;
  caf::actor endpoint;  ///< sent along with a hello
  std::chrono::milliseconds timeout;
  /// Calls made to shut down go on when the user interrupts.
  bool survives_interrupt = false;
  std::shared_ptr<std::promise<Result<ControlAnswer>>> promise;
};

/// A new observer of NodeDown, RuntimeFailure and Interrupted, until it ends.
struct Observe {
  caf::actor observer;
};

/// From now on this launcher, at `address`, is asked each heartbeat interval whether it is there.
/// When it is lost or silent for the heartbeat's timeout, `node` is down: its worker has no one
/// left to watch it, and its machine is most likely gone.
struct WatchLauncher {
  caf::actor launcher;
  std::string address;
  std::string node;
};

struct DriverActorConfig {
  caf::actor endpoint;
  RunKey run_key;
  runtime::v1::Heartbeat heartbeat;  ///< zero fields mean the documented defaults
  /// Called for each NodeDown and RuntimeFailure, on the actor's thread.
  std::function<void(const Error&, const std::string& node)> on_failure;
  /// The launcher of this node was told to stop. On the actor's thread, before observers get
  /// Interrupted.
  std::function<void(const std::string& node)> on_draining;
};

/// The driver's side of control: sends requests on behalf of blocking threads, ends those whose
/// node is lost or that are interrupted, watches launchers, and tells observers what happened, also
/// what happened before they came. Listens to reports of its own run only; the end of the endpoint,
/// without which nothing arrives any more, is a RuntimeFailure. Quits on an exit message, after
/// which nothing is reported.
TROUPE_API caf::actor spawn_driver_actor(caf::actor_system& system, DriverActorConfig config);

/// Sends a request through the driver actor. The future is ready at the latest when the time of the
/// call is over; it holds a broken promise when the actor has ended.
std::future<Result<ControlAnswer>> start_call(const caf::actor& driver_actor, ControlCall call);

/// The same, and waits for the answer.
TROUPE_API Result<ControlAnswer> call(const caf::actor& driver_actor, ControlCall call);

/// Sends a request through the driver actor, for no one to wait for.
void post(const caf::actor& driver_actor, ControlCall call);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ControlCall)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Observe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WatchLauncher)
