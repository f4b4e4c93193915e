#include "data/safetensors.hpp"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <iterator>

#include "unit/model_parallel/temporary_directory.hpp"

namespace mp = troupe::mp;
using troupe::Blob;
using troupe::test::TemporaryDirectory;

namespace {

template <class T>
mp::HostTensor make(mp::v1::DType dtype, mp::Shape shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), Blob::copy_of(values.data(), values.size() * sizeof(T))};
}

std::string length_prefix(std::uint64_t n) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(n >> (8 * i) & 0xFF));
  return bytes;
}

std::string file_of(const std::string& json, std::size_t data_size) {
  return length_prefix(json.size()) + json + std::string(data_size, '\1');
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Opening must fail with bad input at the file, and with this text.
void expect_refused(const std::string& content, const std::string& what) {
  const TemporaryDirectory directory;
  const auto path = directory.write("hostile.safetensors", content);
  const auto file = mp::SafetensorsFile::open(path);
  BOOST_REQUIRE_MESSAGE(!file.ok(), "accepted; expected: " + what);
  BOOST_TEST((file.error().code == troupe::ErrorCode::bad_input));
  BOOST_TEST(file.error().where == path.string());
  BOOST_TEST(file.error().what.find(what) != std::string::npos, file.error().to_string());
}

std::string one_tensor(const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
  return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_in_every_type) {
  const TemporaryDirectory directory;
  mp::TensorMap tensors;
  tensors["f32"] = make<float>(mp::v1::DTYPE_FLOAT32, {2, 2}, {1.5f, -2.0f, 0.0f, 3e38f});
  tensors["f64"] = make<double>(mp::v1::DTYPE_FLOAT64, {1}, {1e-300});
  tensors["i64"] = make<std::int64_t>(mp::v1::DTYPE_INT64, {}, {-5});
  tensors["i32"] = make<std::int32_t>(mp::v1::DTYPE_INT32, {3}, {1, -2, 3});
  tensors["i16"] = make<std::int16_t>(mp::v1::DTYPE_INT16, {1}, {-7});
  tensors["i8"] = make<std::int8_t>(mp::v1::DTYPE_INT8, {3}, {1, 2, -3});
  tensors["u8"] = make<std::uint8_t>(mp::v1::DTYPE_UINT8, {1}, {255});
  tensors["bool"] = make<std::uint8_t>(mp::v1::DTYPE_BOOL, {2}, {1, 0});
  tensors["bf16"] = make<std::uint16_t>(mp::v1::DTYPE_BFLOAT16, {1}, {0x3F80});
  tensors["f16"] = make<std::uint16_t>(mp::v1::DTYPE_FLOAT16, {1}, {0x3C00});
  tensors["empty"] = make<float>(mp::v1::DTYPE_FLOAT32, {0, 4}, {});
  tensors["name \" with \\ and \xC3\xA9"] = make<float>(mp::v1::DTYPE_FLOAT32, {1}, {1.0f});
  const auto path = directory.path() / "all.safetensors";
  BOOST_REQUIRE(mp::write_safetensors(path, tensors, {{"format", "pt"}}).ok());

  const auto file = mp::SafetensorsFile::open(path);
  if (!file.ok()) BOOST_FAIL(file.error().to_string());
  BOOST_TEST(file->names().size() == tensors.size());
  BOOST_TEST(file->metadata().at("format") == "pt");
  for (const auto& [name, expected] : tensors) {
    const auto tensor = file->tensor(name);
    BOOST_REQUIRE(tensor.ok());
    BOOST_TEST((tensor->dtype == expected.dtype), name);
    BOOST_TEST((tensor->shape == expected.shape), name);
    BOOST_REQUIRE(tensor->data.size() == expected.data.size());
    if (!expected.data.empty())
      BOOST_TEST(std::memcmp(tensor->data.data(), expected.data.data(), expected.data.size()) == 0);
  }
}

BOOST_AUTO_TEST_CASE(written_files_are_aligned_and_complete) {
  const TemporaryDirectory directory;
  mp::TensorMap tensors;
  tensors["a"] = make<std::int8_t>(mp::v1::DTYPE_INT8, {3}, {1, 2, 3});
  tensors["b"] = make<double>(mp::v1::DTYPE_FLOAT64, {2}, {1, 2});
  const auto path = directory.path() / "x.safetensors";
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto bytes = read_all(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  BOOST_TEST(header % 8 == 0u);
  BOOST_TEST(bytes.size() == 8 + header + 19);
  // Nothing but the file itself is left in the directory.
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
  const auto file = mp::SafetensorsFile::open(path);
  BOOST_REQUIRE(file.ok());
  const auto b = file->tensor("b");
  BOOST_REQUIRE(b.ok());
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(b->data.data()) % 8 == 0u);
}

BOOST_AUTO_TEST_CASE(writing_replaces_the_old_file_and_fails_without_traces) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  mp::TensorMap tensors;
  tensors["a"] = make<float>(mp::v1::DTYPE_FLOAT32, {1}, {1});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  const auto before = read_all(path);

  tensors["b"] = make<float>(mp::v1::DTYPE_FLOAT32, {2}, {1});
  const auto mismatch = mp::write_safetensors(path, tensors);
  BOOST_REQUIRE(!mismatch.ok());
  BOOST_TEST(mismatch.error().what.find("'b'") != std::string::npos);
  BOOST_TEST(read_all(path) == before);

  tensors["b"] = make<float>(mp::v1::DTYPE_FLOAT32, {1}, {2});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  BOOST_TEST(read_all(path) != before);

  const auto nowhere = mp::write_safetensors(directory.path() / "no" / "x", tensors);
  BOOST_REQUIRE(!nowhere.ok());
  BOOST_TEST((nowhere.error().code == troupe::ErrorCode::bad_input));
  tensors["\xFF"] = tensors["a"];
  BOOST_TEST(!mp::write_safetensors(path, tensors).ok());
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_missing_tensor_is_named_beside_those_there_are) {
  const TemporaryDirectory directory;
  const auto path = directory.write("x.safetensors", file_of(one_tensor("F32", "[1]", "[0,4]"), 4));
  const auto file = mp::SafetensorsFile::open(path);
  BOOST_REQUIRE(file.ok());
  const auto missing = file->tensor("y");
  BOOST_REQUIRE(!missing.ok());
  BOOST_TEST(missing.error().where == path.string());
  BOOST_TEST(missing.error().what.find("'y'") != std::string::npos);
  BOOST_TEST(missing.error().hint.find("x") != std::string::npos);
  BOOST_TEST(!mp::SafetensorsFile::open(directory.path() / "none").ok());
  BOOST_TEST(!mp::SafetensorsFile::open(directory.path()).ok());
}

BOOST_AUTO_TEST_CASE(misaligned_data_of_foreign_files_is_copied) {
  const TemporaryDirectory directory;
  for (std::size_t padding = 0; padding < 8; ++padding) {
    const auto json = one_tensor("F64", "[2]", "[0,16]") + std::string(padding, ' ');
    const double values[2] = {0.5, -3.0};
    std::string content = file_of(json, 0);
    content.append(reinterpret_cast<const char*>(values), sizeof values);
    const auto file = mp::SafetensorsFile::open(directory.write("x", content));
    BOOST_REQUIRE(file.ok());
    const auto tensor = file->tensor("x");
    BOOST_REQUIRE(tensor.ok());
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(tensor->data.data()) % 8 == 0u);
    BOOST_TEST(tensor->as<double>()[0] == 0.5);
    BOOST_TEST(tensor->as<double>()[1] == -3.0);
  }
}

BOOST_AUTO_TEST_CASE(tensors_outlive_the_file_object_and_the_file) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  mp::TensorMap tensors;
  tensors["a"] = make<float>(mp::v1::DTYPE_FLOAT32, {1}, {4.0f});
  BOOST_REQUIRE(mp::write_safetensors(path, tensors).ok());
  mp::HostTensor kept;
  {
    const auto file = mp::SafetensorsFile::open(path);
    BOOST_REQUIRE(file.ok());
    kept = *file->tensor("a");
  }
  std::filesystem::remove(path);
  BOOST_TEST(kept.as<float>()[0] == 4.0f);
}

BOOST_AUTO_TEST_CASE(truncated_files_are_refused) {
  expect_refused("", "truncated");
  expect_refused("abc", "truncated");
  expect_refused(length_prefix(100) + "{}", "truncated");
  const auto whole = file_of(one_tensor("F32", "[4]", "[0,16]"), 16);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const TemporaryDirectory directory;
    const auto file = mp::SafetensorsFile::open(directory.write("x", whole.substr(0, size)));
    BOOST_REQUIRE_MESSAGE(!file.ok(), "accepted " + std::to_string(size) + " bytes");
  }
}

BOOST_AUTO_TEST_CASE(huge_header_lengths_are_refused) {
  expect_refused(length_prefix(~0ull) + "{}", "over the limit");
  expect_refused(length_prefix(100'000'001) + "{}", "over the limit");
  expect_refused(length_prefix(0), "malformed JSON");
}

BOOST_AUTO_TEST_CASE(offsets_shapes_and_types_are_checked) {
  expect_refused(file_of(one_tensor("F32", "[1]", "[0,8]"), 4), "lies at bytes");
  expect_refused(file_of(one_tensor("F32", "[1]", "[4,0]"), 4), "lies at bytes");
  expect_refused(file_of(one_tensor("F32", "[2]", "[0,4]"), 4), "does not fit");
  expect_refused(file_of(one_tensor("F64", "[1]", "[0,4]"), 4), "does not fit");
  expect_refused(file_of(one_tensor("F8_E4M3", "[4]", "[0,4]"), 4), "not supported");
  expect_refused(file_of(one_tensor("F32", "[9223372036854775807, 4]", "[0,4]"), 4),
                 "does not fit");
  expect_refused(file_of(one_tensor("F64", "[4611686018427387904]", "[0,4]"), 4), "does not fit");
  expect_refused(file_of(one_tensor("F32", "[18446744073709551615]", "[0,4]"), 4), "out of range");
  expect_refused(file_of(one_tensor("F32", "[-1]", "[0,4]"), 4), "negative");
  expect_refused(file_of(one_tensor("F32", "[1.5]", "[0,4]"), 4), "no integer");
  expect_refused(file_of(one_tensor("F32", "[1]", "[0]"), 4), "not two numbers");
  expect_refused(file_of(one_tensor("F32", "[1]", "[0,4,4]"), 4), "not two numbers");
  expect_refused(file_of(one_tensor("F32", "[4294967296,4294967296,0]", "[0,4]"), 4),
                 "does not fit");
}

BOOST_AUTO_TEST_CASE(overlaps_and_holes_are_refused) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  expect_refused(file_of(two("[0,4]", "[0,4]"), 4), "overlaps");
  expect_refused(file_of(two("[0,4]", "[2,6]"), 6), "overlaps");
  expect_refused(file_of(two("[0,4]", "[5,9]"), 9), "unused");
  expect_refused(file_of(two("[1,5]", "[5,9]"), 9), "unused");
  expect_refused(file_of(two("[0,4]", "[4,8]"), 9), "unused");
}

BOOST_AUTO_TEST_CASE(malformed_headers_are_refused) {
  expect_refused(file_of("", 0), "malformed JSON");
  expect_refused(file_of("{", 0), "malformed JSON");
  expect_refused(file_of("{}x", 0), "malformed JSON");
  expect_refused(file_of("{\"\xFF\":1}", 0), "malformed JSON");
  expect_refused(file_of("[]", 0), "misplaced list");
  expect_refused(file_of("5", 0), "misplaced number");
  expect_refused(file_of("null", 0), "misplaced null");
  expect_refused(file_of(R"({"x":5})", 0), "misplaced number");
  expect_refused(file_of(R"({"x":{"dtype":"F32"}})", 0), "no shape");
  expect_refused(file_of(R"({"x":{"dtype":true}})", 0), "truth value");
  expect_refused(file_of(R"({"x":{"dtype":"F32","strides":[1]}})", 0), "unknown field 'strides'");
  expect_refused(file_of(R"({"x":{"dtype":"F32","dtype":"F64"}})", 0), "appears twice");
  expect_refused(file_of(R"({"x":{"shape":[[1]]}})", 0), "misplaced list");
  expect_refused(file_of(R"({"x":{"shape":{}}})", 0), "nested");
  expect_refused(file_of(R"({"__metadata__":{"a":1}})", 0), "misplaced number");
  expect_refused(file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "appears twice");
  expect_refused(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "appears twice");
  const auto x = R"("x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_refused(file_of(std::string("{") + x + "," + x + "}", 0), "appears twice");
  std::string many = "[0";
  for (int i = 0; i < 100; ++i) many += ",0";
  expect_refused(file_of(one_tensor("U8", many + "]", "[0,0]"), 0), "too many dimensions");
}

BOOST_AUTO_TEST_CASE(deep_nesting_neither_recurses_nor_is_built) {
  const std::string deep(1'000'000, '[');
  expect_refused(file_of(R"({"x":{"shape":)" + deep, 0), "misplaced list");
  std::string objects = R"({"x":{"shape":)";
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  expect_refused(file_of(objects, 0), "nested");
}

BOOST_AUTO_TEST_SUITE_END()
