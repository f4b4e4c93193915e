#include <cstring>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <boost/test/unit_test.hpp>

#include "libtorch/tensors.hpp"

using namespace troupe::mp;
using namespace troupe::mp::libtorch;

namespace {

HostTensor host_floats(Shape shape, std::size_t count) {
  HostTensor host;
  host.shape = std::move(shape);
  host.data = troupe::Blob::uninitialized(count * sizeof(float));
  auto* numbers = reinterpret_cast<float*>(host.data.mutable_data());
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i) * 0.5f;
  return host;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_element_type_survives_the_round_trip) {
  for (const auto dtype :
       {v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64, v1::DTYPE_INT64, v1::DTYPE_INT32, v1::DTYPE_UINT8,
        v1::DTYPE_BOOL, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16, v1::DTYPE_INT8, v1::DTYPE_INT16})
    BOOST_TEST(to_dtype(to_scalar_type(dtype)) == dtype);
  BOOST_CHECK_THROW(to_scalar_type(v1::DTYPE_UNSPECIFIED), c10::Error);
  BOOST_CHECK_THROW(to_dtype(at::kComplexFloat), c10::Error);
}

BOOST_AUTO_TEST_CASE(nothing_is_copied_either_way) {
  const HostTensor host = host_floats({2, 3}, 6);
  const at::Tensor tensor = to_tensor(host);
  BOOST_TEST(tensor.data_ptr() == static_cast<const void*>(host.data.data()));
  const HostTensor back = to_host(tensor);
  BOOST_TEST(static_cast<const void*>(back.data.data()) == tensor.data_ptr());
  BOOST_TEST((back.shape == Shape{2, 3}));
}

BOOST_AUTO_TEST_CASE(the_bytes_outlive_the_blob_they_came_in) {
  at::Tensor tensor;
  HostTensor back;
  {
    const HostTensor host = host_floats({4}, 4);
    tensor = to_tensor(host);
    back = to_host(tensor);
  }
  tensor.reset();
  BOOST_TEST(back.as<float>()[3] == 1.5f);
}

BOOST_AUTO_TEST_CASE(misaligned_bytes_are_copied) {
  const auto padded = troupe::Blob::uninitialized(9);
  const float number = 2.5f;
  HostTensor host;
  host.shape = {1};
  host.data = padded.slice(1, sizeof number);
  std::memcpy(host.data.mutable_data(), &number, sizeof number);
  const at::Tensor tensor = to_tensor(host);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % alignof(float) == 0);
  BOOST_TEST(tensor.item<float>() == number);
}

BOOST_AUTO_TEST_CASE(a_payload_of_the_wrong_size_is_refused) {
  HostTensor host = host_floats({2, 3}, 6);
  host.shape = {2, 4};
  BOOST_CHECK_THROW(to_tensor(host), c10::Error);
}

BOOST_AUTO_TEST_CASE(other_memory_formats_leave_in_row_major_order) {
  const at::Tensor plain = at::arange(2 * 3 * 4 * 5, at::kFloat).reshape({2, 3, 4, 5});
  const HostTensor host = to_host(plain.contiguous(at::MemoryFormat::ChannelsLast));
  BOOST_TEST(std::memcmp(host.data.data(), plain.data_ptr(), plain.nbytes()) == 0);
}

BOOST_AUTO_TEST_CASE(strides_of_dimensions_of_one_are_those_of_a_fresh_tensor) {
  const at::Tensor odd = at::empty_strided({2, 3, 1, 1}, {3, 1, 3, 3}, at::kFloat);
  BOOST_REQUIRE(odd.is_contiguous());
  const at::Tensor plain = row_major(odd);
  BOOST_TEST((plain.strides() == at::IntArrayRef({3, 1, 1, 1})));
  BOOST_TEST(plain.data_ptr() == odd.data_ptr());
}

BOOST_AUTO_TEST_CASE(channels_last_strides_are_those_of_a_fresh_tensor_too) {
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const at::Tensor plain = at::arange(2 * 3 * 4 * 5, at::kFloat).reshape({2, 3, 4, 5});
  const at::Tensor turned = in_layout(plain, channels_last);
  BOOST_TEST((turned.strides() == at::IntArrayRef({60, 1, 15, 3})));
  BOOST_TEST(turned.equal(plain));
  BOOST_TEST(in_layout(turned, channels_last).data_ptr() == turned.data_ptr());
  for (const at::Tensor& odd : {at::ones({2, 3, 1, 1}), at::ones({2, 1, 4, 5})}) {
    BOOST_REQUIRE(odd.is_contiguous(channels_last));
    const at::Tensor same = in_layout(odd, channels_last);
    BOOST_TEST(same.data_ptr() == odd.data_ptr());
    BOOST_TEST(same.stride(1) == 1);
    BOOST_TEST(same.stride(3) == odd.size(1));
  }
  BOOST_TEST((in_layout(at::ones({2, 3}), channels_last).strides() == at::IntArrayRef({3, 1})));
  BOOST_TEST(!in_layout(at::Tensor(), channels_last).defined());
}

BOOST_AUTO_TEST_CASE(empty_and_scalar_tensors_survive) {
  HostTensor none;
  none.shape = {0, 3};
  BOOST_TEST((to_host(to_tensor(none)).shape == Shape{0, 3}));
  const HostTensor scalar = to_host(at::ones({}, at::kDouble));
  BOOST_TEST(scalar.shape.empty());
  BOOST_TEST(to_tensor(scalar).item<double>() == 1.0);
}
