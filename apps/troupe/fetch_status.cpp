#include "fetch_status.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include "actor/call_node.hpp"
#include "actor/control_codec.hpp"
#include "app/application.hpp"

namespace troupe::cli {

Result<runtime::v1::Status> fetch_status(const std::string& address,
                                         std::chrono::milliseconds timeout) {
  Application application;
  caf::scoped_actor self(application.system());
  TROUPE_ASSIGN(auto node, call_node(*self.ptr(), application.network(), {"", address, ""},
                                     make_tool_hello(), nullptr, timeout));
  runtime::v1::Request request;
  request.mutable_get_status();
  Result<runtime::v1::Response> response = cluster_error(address, "no answer");
  self->request(node.control, timeout, encode(request))
      .receive([&](const ControlBytes& bytes) { response = decode_response(bytes); },
               [&](const caf::error& error) {
                 response =
                     cluster_error(address, "no answer: " + application.system().render(error));
               });
  if (!response) return std::move(response).error();
  return response->status();
}

}  // namespace troupe::cli
