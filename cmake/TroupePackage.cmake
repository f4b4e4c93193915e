# What other projects need to build against Troupe: find_package(Troupe) works with this build tree
# or with a prefix of `cmake --install` in CMAKE_PREFIX_PATH. Both have binaries, libraries and
# plugins in the same places, so that the package differs only in where headers lie.
include(CMakePackageConfigHelpers)

set(package lib/cmake/Troupe)
set(package_source ${CMAKE_CURRENT_LIST_DIR}/package)
set(package_files ${package_source}/TroupeLayerLibrary.cmake ${CMAKE_CURRENT_LIST_DIR}/FindCAF.cmake
  ${CMAKE_CURRENT_LIST_DIR}/TroupeLibTorch.cmake)
set(public_headers ${PROJECT_SOURCE_DIR}/runtime/include
  ${PROJECT_SOURCE_DIR}/plugins/model_parallel/include)
set(generated_headers ${PROJECT_BINARY_DIR}/runtime/proto
  ${PROJECT_BINARY_DIR}/plugins/model_parallel/proto)

set(TROUPE_PACKAGE_HEADERS ${public_headers} ${generated_headers})
configure_file(${package_source}/TroupeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/${package}/TroupeConfig.cmake @ONLY)
file(COPY ${package_files} DESTINATION ${PROJECT_BINARY_DIR}/${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/${package}/TroupeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

set(TROUPE_PACKAGE_HEADERS "\${troupe_prefix}/include")
configure_file(${package_source}/TroupeConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/TroupeConfig.cmake @ONLY)

# Plugins have companions beside them, and the runtime two directories up.
set(plugins troupe_mp troupe_netprobe)
if(TROUPE_LIBTORCH)
  list(APPEND plugins troupe_mp_libtorch)
endif()
set_target_properties(${plugins} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../..")
install(TARGETS troupe RUNTIME DESTINATION bin)
install(TARGETS troupe_runtime LIBRARY DESTINATION lib)
install(TARGETS ${plugins} LIBRARY DESTINATION lib/troupe/plugins)
install(FILES ${TROUPE_PLUGIN_OUTPUT_DIRECTORY}/troupe_mp.plugin
  ${TROUPE_PLUGIN_OUTPUT_DIRECTORY}/troupe_netprobe.plugin DESTINATION lib/troupe/plugins)
foreach(headers IN LISTS public_headers generated_headers)
  install(DIRECTORY ${headers}/ DESTINATION include FILES_MATCHING PATTERN *.hpp PATTERN *.pb.h)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/package/TroupeConfig.cmake
  ${PROJECT_BINARY_DIR}/${package}/TroupeConfigVersion.cmake ${package_files}
  DESTINATION ${package})
