#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace troupe::mp::libtorch {

/// As long as it stands, LibTorch's autocast computes in this thread on `device` what it lists for
/// the device in `type` (linear layers, products of matrices, convolutions) and the rest in the
/// type it is given. Weights are cast anew for each use: they change between steps.
class Autocast {
 public:
  Autocast(at::Device device, at::ScalarType type);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool cuda_;
  bool enabled_;
  bool cached_;
  at::ScalarType type_;
};

}  // namespace troupe::mp::libtorch
