#include "core/precision.hpp"

namespace troupe::mp {

v1::Precision precision_or_default(v1::Precision precision) {
  return precision == v1::PRECISION_UNSPECIFIED ? v1::PRECISION_FLOAT32 : precision;
}

v1::DType master_type(v1::Precision precision) {
  return precision == v1::PRECISION_FLOAT64 ? v1::DTYPE_FLOAT64 : v1::DTYPE_FLOAT32;
}

v1::DType activation_type(v1::Precision precision) {
  switch (precision) {
    case v1::PRECISION_BFLOAT16: return v1::DTYPE_BFLOAT16;
    case v1::PRECISION_FLOAT16: return v1::DTYPE_FLOAT16;
    default: return master_type(precision);
  }
}

bool is_mixed(v1::Precision precision) {
  return activation_type(precision) != master_type(precision);
}

std::string name_of(v1::Precision precision) {
  return v1::Precision_Name(precision_or_default(precision));
}

Result<void> check_precision(v1::Precision precision, const std::string& device,
                             const std::string& where) {
  if (precision != v1::PRECISION_FLOAT16 || device != "cpu") return {};
  return bad_input(where, "float16 on the device \"cpu\", which LibTorch cannot compute",
                   "use PRECISION_BFLOAT16, or a CUDA device");
}

}  // namespace troupe::mp
