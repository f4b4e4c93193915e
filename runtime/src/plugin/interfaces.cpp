// The destructors of the interfaces that plugins implement or are handed: one home for each
// vtable, in the runtime.
#include "troupe/plugin.hpp"

namespace troupe {

JobRunner::~JobRunner() = default;
ConfigSource::~ConfigSource() = default;
Registry::~Registry() = default;

}  // namespace troupe
