#include "troupe/mailer.hpp"

#include <utility>

#include <caf/send.hpp>

#include "transport/endpoint.hpp"
#include "troupe/messages.hpp"

namespace troupe {

Mailer::Mailer(std::string node, caf::actor endpoint)
    : node_(std::move(node)), endpoint_(std::move(endpoint)) {}

void Mailer::send(Parcel parcel) const { caf::anon_send(endpoint_, std::move(parcel)); }

void Mailer::bind(const std::string& name, const caf::actor& actor) const {
  caf::anon_send(endpoint_, Bind{name, actor});
}

void Mailer::unbind(const std::string& name) const { caf::anon_send(endpoint_, Unbind{name}); }

}  // namespace troupe
