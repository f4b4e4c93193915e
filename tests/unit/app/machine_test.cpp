#include "app/machine.hpp"

#include <boost/test/unit_test.hpp>

#include "app/environment_policy.hpp"
#include "core/resident_memory.hpp"

namespace troupe {
namespace {

Machine with_flags(const std::string& flags) {
  return parse_cpuinfo("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: " + flags +
                       "\n\nprocessor\t: 1\nmodel name\t: Another\nflags\t: none\n");
}

constexpr const char* avx512 = "fpu sse2 avx avx2 fma avx512f avx512dq avx512bw avx512vl";
constexpr const char* avx2 = "fpu sse2 avx avx2 fma";

}  // namespace

BOOST_AUTO_TEST_SUITE(machine)

BOOST_AUTO_TEST_CASE(model_and_flags_are_those_of_the_first_processor) {
  const Machine machine = with_flags(avx2);
  BOOST_TEST(machine.cpu_model == "Some CPU @ 2 GHz");
  BOOST_TEST(machine.cpu_flags.count("fma") == 1u);
  BOOST_TEST(machine.cpu_flags.count("none") == 0u);
}

BOOST_AUTO_TEST_CASE(kernels_follow_the_instruction_set) {
  BOOST_TEST(blas_core_type(with_flags(avx512)).value_or("") == "SkylakeX");
  BOOST_TEST(blas_core_type(with_flags(avx2)).value_or("") == "Haswell");
  // Part of AVX-512 is not enough for kernels that use all of it.
  BOOST_TEST(blas_core_type(with_flags("sse2 avx avx2 fma avx512f")).value_or("") == "Haswell");
  BOOST_TEST(!blas_core_type(with_flags("fpu sse2 avx")).has_value());
  BOOST_TEST(!blas_core_type(parse_cpuinfo("")).has_value());
  BOOST_TEST(instruction_set(with_flags("fpu sse2 avx")) == "avx");
  BOOST_TEST(instruction_set(parse_cpuinfo("")) == "unknown");
}

BOOST_AUTO_TEST_CASE(later_layers_of_the_environment_win_and_gaps_are_filled) {
  const Environment result = worker_environment(
      {{"PATH", "/bin"}, {"OMP_NUM_THREADS", "8"}},
      {{{"OMP_NUM_THREADS", "2"}, {"A", "job"}}, {{"A", "node"}}}, with_flags(avx2));
  BOOST_TEST(result.at("PATH") == "/bin");
  BOOST_TEST(result.at("A") == "node");
  BOOST_TEST(result.at("OMP_NUM_THREADS") == "2");
  BOOST_TEST(result.at("OPENBLAS_NUM_THREADS") == "2");
  BOOST_TEST(result.at("OPENBLAS_CORETYPE") == "Haswell");
}

BOOST_AUTO_TEST_CASE(what_is_said_is_respected) {
  const Environment inherited =
      worker_environment({{"OPENBLAS_CORETYPE", "Zen"}}, {}, with_flags(avx512));
  BOOST_TEST(inherited.at("OPENBLAS_CORETYPE") == "Zen");
  BOOST_TEST(inherited.count("OPENBLAS_NUM_THREADS") == 0u);
  const Environment of_job = worker_environment(
      {}, {{{"OPENBLAS_NUM_THREADS", "3"}, {"OMP_NUM_THREADS", "1"}}}, with_flags("sse2"));
  BOOST_TEST(of_job.at("OPENBLAS_NUM_THREADS") == "3");
  BOOST_TEST(of_job.count("OPENBLAS_CORETYPE") == 0u);
}

BOOST_AUTO_TEST_CASE(workers_keep_freed_memory_in_huge_pages_unless_the_allocator_is_tuned) {
  const Environment tuned = worker_environment({}, {}, with_flags(avx2));
  BOOST_TEST(tuned.at("MALLOC_ARENA_MAX") == "1");
  BOOST_TEST(tuned.at("MALLOC_MMAP_MAX_") == "0");
  BOOST_TEST(tuned.at("MALLOC_TRIM_THRESHOLD_") == "1099511627776");
  BOOST_TEST(tuned.at("MALLOC_TOP_PAD_") == "67108864");
  BOOST_TEST(tuned.at("GLIBC_TUNABLES") == "glibc.malloc.hugetlb=1");
  const Environment partly = worker_environment({{"MALLOC_ARENA_MAX", "4"}}, {}, with_flags(avx2));
  BOOST_TEST(partly.at("MALLOC_ARENA_MAX") == "4");
  const Environment own =
      worker_environment({{"GLIBC_TUNABLES", "glibc.malloc.arena_max=2"}}, {}, with_flags(avx2));
  BOOST_TEST(own.at("GLIBC_TUNABLES") == "glibc.malloc.arena_max=2");
  BOOST_TEST(own.count("MALLOC_MMAP_MAX_") == 0u);
  const Environment other =
      worker_environment({{"GLIBC_TUNABLES", "glibc.rtld.nns=4"}}, {}, with_flags(avx2));
  BOOST_TEST(other.at("GLIBC_TUNABLES") == "glibc.rtld.nns=4:glibc.malloc.hugetlb=1");
}

BOOST_AUTO_TEST_CASE(this_machine_can_be_read) {
  const Machine machine = read_machine();
  BOOST_TEST(machine.cores >= 1u);
  BOOST_TEST(machine.memory_bytes > machine.available_memory_bytes);
  BOOST_TEST(resident_bytes() > 0u);
}

BOOST_AUTO_TEST_CASE(a_job_may_set_arithmetic_but_nothing_that_loads_files) {
  BOOST_TEST(check_requested_environment("node n",
                                         {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_CORETYPE", "Zen"}})
                 .ok());
  for (const char* name :
       {"LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "OMP_TOOL_LIBRARIES", "CUDA_INJECTION64_PATH",
        "CUDA_COREDUMP_FILE", "DNNL_JIT_DUMP", "TROUPE_PLUGIN_PATH", "HOME", "", "OMP_X=Y"}) {
    auto checked = check_requested_environment("node n", {{name, "x"}});
    BOOST_REQUIRE_MESSAGE(!checked, name);
    BOOST_TEST(static_cast<int>(checked.error().code) == static_cast<int>(ErrorCode::bad_input));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
