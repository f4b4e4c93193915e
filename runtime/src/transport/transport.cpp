#include "transport/transport.hpp"

namespace troupe {

Transport::~Transport() = default;

}  // namespace troupe
