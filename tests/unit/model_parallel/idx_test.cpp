#include "data/idx.hpp"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <iterator>

#include "unit/model_parallel/temporary_directory.hpp"

namespace mp = troupe::mp;
using troupe::test::TemporaryDirectory;

namespace {

std::string big_endian(std::uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

std::string header(unsigned char type, std::initializer_list<std::uint32_t> shape) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const auto d : shape) bytes += big_endian(d);
  return bytes;
}

std::string counting(std::size_t n) {
  std::string bytes;
  for (std::size_t i = 0; i < n; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

std::string compressed(const TemporaryDirectory& directory, const std::string& content) {
  const auto path = directory.path() / "to-compress.gz";
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  ::gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_error(const std::filesystem::path& path, const std::string& what) {
  const auto result = mp::read_idx(path);
  BOOST_REQUIRE_MESSAGE(!result.ok(), "accepted; expected: " + what);
  BOOST_TEST((result.error().code == troupe::ErrorCode::bad_input));
  BOOST_TEST(result.error().where == path.string());
  BOOST_TEST(result.error().what.find(what) != std::string::npos, result.error().to_string());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(idx)

BOOST_AUTO_TEST_CASE(plain_and_compressed_files_read_the_same) {
  const TemporaryDirectory directory;
  const std::string content = header(8, {3, 2, 4}) + counting(24);
  for (const auto& path : {directory.write("plain", content),
                           directory.write("packed.gz", compressed(directory, content))}) {
    const auto tensor = mp::read_idx(path);
    if (!tensor.ok()) BOOST_FAIL(tensor.error().to_string());
    BOOST_TEST((tensor->shape == mp::Shape{3, 2, 4}));
    BOOST_TEST(tensor->validate().ok());
    for (int i = 0; i < 24; ++i) BOOST_TEST(tensor->as<std::uint8_t>()[i] == i);
  }
}

BOOST_AUTO_TEST_CASE(a_limit_reads_only_the_first_entries) {
  const TemporaryDirectory directory;
  // The file may even end behind them.
  const auto path = directory.write("x", header(8, {1000, 2}) + counting(6));
  const auto tensor = mp::read_idx(path, 3);
  BOOST_REQUIRE(tensor.ok());
  BOOST_TEST((tensor->shape == mp::Shape{3, 2}));
  const auto all = mp::read_idx(directory.write("y", header(8, {2}) + counting(2)), 5);
  BOOST_REQUIRE(all.ok());
  BOOST_TEST((all->shape == mp::Shape{2}));
}

BOOST_AUTO_TEST_CASE(headers_are_checked) {
  const TemporaryDirectory directory;
  expect_error(directory.path() / "none", "no such file");
  expect_error(directory.path(), "no such file");
  expect_error(directory.write("a", ""), "truncated");
  expect_error(directory.write("b", std::string(3, '\0')), "truncated");
  expect_error(directory.write("c", "PK\3\4 and so on"), "not an IDX file");
  expect_error(directory.write("d", header(13, {1}) + counting(4)), "element type 13");
  expect_error(directory.write("e", header(8, {})), "0 dimensions");
  expect_error(directory.write("f", header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x"), "9 dimensions");
  expect_error(directory.write("g", header(8, {1, 2}).substr(0, 9)), "bytes of dimensions");
}

BOOST_AUTO_TEST_CASE(truncated_files_say_what_is_missing) {
  const TemporaryDirectory directory;
  const std::string content = header(8, {10, 10}) + counting(100);
  expect_error(directory.write("plain", content.substr(0, 60)), "100 bytes for shape [10, 10]");
  const std::string packed = compressed(directory, content);
  for (std::size_t size = 0; size < packed.size(); ++size)
    BOOST_TEST(!mp::read_idx(directory.write("cut.gz", packed.substr(0, size))).ok());
}

BOOST_AUTO_TEST_CASE(a_huge_count_costs_no_memory) {
  const TemporaryDirectory directory;
  expect_error(directory.write("a", header(8, {0xFFFFFFFF, 0xFFFF}) + "abc"), "truncated");
  expect_error(directory.write("b", header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}) + "abc"),
               "too many elements");
}

BOOST_AUTO_TEST_CASE(damaged_and_overlong_files_are_refused) {
  const TemporaryDirectory directory;
  expect_error(directory.write("long", header(8, {2}) + "abc"), "longer");
  std::string packed = compressed(directory, header(8, {1000}) + counting(1000));
  packed[packed.size() - 5] = static_cast<char>(packed[packed.size() - 5] ^ 1);
  expect_error(directory.write("checksum.gz", packed), "cannot read");
}

BOOST_AUTO_TEST_SUITE_END()
