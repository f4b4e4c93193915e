#pragma once

#include <caf/fwd.hpp>

#include "troupe/api.hpp"

namespace troupe {

/// What every actor sets up first, since CAF's defaults suit none: a message that it does not know
/// is dropped (a request gets an error) instead of being printed whole, and an exception ends it
/// with an error that holds the exception's text instead of a mere number.
TROUPE_API void guard(caf::scheduled_actor& self);

}  // namespace troupe
