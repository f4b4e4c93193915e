#include "transport/basp_transport.hpp"

#include <utility>

#include <caf/send.hpp>

#include "transport/wire.hpp"

namespace troupe {

void BaspTransport::send(const std::string&, const caf::actor& to, Frame frame) {
  caf::anon_send(to, std::move(frame));
}

}  // namespace troupe
