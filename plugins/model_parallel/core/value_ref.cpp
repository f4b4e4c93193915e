#include "core/value_ref.hpp"

namespace troupe::mp {

ValueKey key_of(const v1::ValueRef& value) { return {value.layer(), value.slot(), value.field()}; }

std::string describe(const v1::ValueRef& value) {
  if (value.layer().empty()) return "field \"" + value.field() + "\"";
  return "output " + std::to_string(value.slot()) + " of layer \"" + value.layer() + "\"";
}

v1::ValueRef output_of(const std::string& layer, std::uint32_t slot) {
  v1::ValueRef value;
  value.set_layer(layer);
  value.set_slot(slot);
  return value;
}

v1::ValueRef batch_field(const std::string& name) {
  v1::ValueRef value;
  value.set_field(name);
  return value;
}

Value absent_value() {
  Value value;
  value.absent = true;
  return value;
}

bool is_loss_kind(const std::string& kind) { return kind.compare(0, 5, "loss.") == 0; }

}  // namespace troupe::mp
