#include "troupe/guard.hpp"

#include <exception>
#include <string>

#include <caf/error.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>

namespace troupe {
namespace {

std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void guard(caf::scheduled_actor& self) {
  self.set_default_handler(caf::drop);
  self.set_exception_handler([](std::exception_ptr& exception) -> caf::error {
    return caf::make_error(caf::sec::runtime_error, text_of(exception));
  });
}

}  // namespace troupe
