#pragma once

#include <google/protobuf/text_format.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "data/data_source.hpp"

/// What the tests of all kinds of data do alike.

namespace troupe::mp::test {

using Source = std::unique_ptr<DataSource>;

enum class Loss { none, mse, cross_entropy };

/// `Loss::none` is a prediction's: no targets.
inline DataOptions options_for(Loss loss, v1::DType dtype = v1::DTYPE_FLOAT32,
                               std::uint64_t seed = 42) {
  DataOptions options;
  options.seed = seed;
  options.dtype = dtype;
  options.need_targets = loss != Loss::none;
  if (loss == Loss::mse) options.loss.mutable_mse();
  if (loss == Loss::cross_entropy) options.loss.mutable_cross_entropy();
  return options;
}

inline Result<Source> try_open(const std::string& text, const DataOptions& options) {
  v1::Data data;
  BOOST_REQUIRE_MESSAGE(google::protobuf::TextFormat::ParseFromString(text, &data), text);
  return open_data(data, options);
}

inline Source open(const std::string& text, const DataOptions& options) {
  auto source = try_open(text, options);
  if (!source.ok()) BOOST_FAIL(source.error().to_string());
  return std::move(*source);
}

inline Batch batch(DataSource& source, std::uint64_t epoch, std::uint64_t index,
                   std::uint32_t size) {
  auto result = source.batch(epoch, index, size);
  if (!result.ok()) BOOST_FAIL(result.error().to_string());
  for (const auto& [name, tensor] : result->fields) {
    BOOST_TEST(tensor.validate().ok());
    BOOST_TEST(tensor.shape[0] == static_cast<std::int64_t>(result->samples));
  }
  return std::move(*result);
}

inline bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.data.size() == b.data.size() &&
         std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0;
}

inline void expect_error(const Error& error, const std::string& where, const std::string& what) {
  BOOST_TEST((error.code == ErrorCode::bad_input));
  BOOST_TEST(error.where.find(where) != std::string::npos, error.to_string());
  BOOST_TEST(error.to_string().find(what) != std::string::npos, error.to_string());
}

/// Opening the data fails, with this in the error's place and this in its text.
inline void expect_error(const std::string& text, const DataOptions& options,
                         const std::string& where, const std::string& what) {
  const auto source = try_open(text, options);
  BOOST_REQUIRE_MESSAGE(!source.ok(), "accepted: " + text);
  expect_error(source.error(), where, what);
}

template <class T>
HostTensor make(v1::DType dtype, Shape shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), Blob::copy_of(values.data(), values.size() * sizeof(T))};
}

}  // namespace troupe::mp::test
