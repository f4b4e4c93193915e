#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "troupe/api.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/model.pb.h"

namespace troupe::mp {

/// A value as a key of containers: (layer, slot, field).
using ValueKey = std::tuple<std::string, std::uint32_t, std::string>;

TROUPE_API ValueKey key_of(const v1::ValueRef& value);

/// `output 0 of layer "fc"` or `field "inputs"`: a value in errors.
TROUPE_API std::string describe(const v1::ValueRef& value);

TROUPE_API v1::ValueRef output_of(const std::string& layer, std::uint32_t slot);
v1::ValueRef batch_field(const std::string& name);

/// A value that is not there.
TROUPE_API Value absent_value();

/// Name of the layer that the plan appends for the loss.
inline constexpr const char* loss_layer = "loss";

/// Whether a kind of layer is a loss: "loss.mse".
TROUPE_API bool is_loss_kind(const std::string& kind);

}  // namespace troupe::mp
