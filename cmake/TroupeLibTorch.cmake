# LibTorch as the target Troupe::libtorch. The package's own TorchConfig pulls in flags for every
# target of the directory; two libraries and one include path are all that is needed here.
find_path(TROUPE_TORCH_INCLUDE_DIR ATen/core/Tensor.h REQUIRED)
find_library(TROUPE_TORCH_CPU_LIBRARY torch_cpu REQUIRED)
find_library(TROUPE_C10_LIBRARY c10 REQUIRED)
if(NOT TARGET Troupe::libtorch)
  add_library(Troupe::libtorch INTERFACE IMPORTED)
  target_include_directories(Troupe::libtorch SYSTEM INTERFACE ${TROUPE_TORCH_INCLUDE_DIR})
  target_link_libraries(Troupe::libtorch INTERFACE ${TROUPE_TORCH_CPU_LIBRARY} ${TROUPE_C10_LIBRARY})
endif()
