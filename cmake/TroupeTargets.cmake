# The few functions every CMakeLists.txt of Troupe is written with.

# Warning and sanitizer flags of all our own targets; generated code does not get the warnings.
function(troupe_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  # CAF 0.17 warns in its own headers, which are system headers to us.
  if(TROUPE_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${TROUPE_SANITIZE})
  endif()
endfunction()

# troupe_precompile(TARGET NAME): precompiles cmake/pch/NAME.hpp for a target.
function(troupe_precompile target name)
  if(TROUPE_PCH)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch/${name}.hpp)
  endif()
endfunction()

# troupe_compile_in_batches(TARGET): compiles several sources of a library as one, since most of
# the time goes into the templates of CAF that they share.
function(troupe_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# troupe_protobuf(TARGET ROOT FILES... [IMPORTS dirs...] [DEPENDS targets...])
# An OBJECT library of generated messages. Exactly one shared library may link it: a descriptor
# registered twice in one process aborts. TARGET_sources generates without compiling.
function(troupe_protobuf target)
  cmake_parse_arguments(arg "" "ROOT;EXPORT_MACRO" "FILES;IMPORTS" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/proto)
  set(include_flags -I${arg_ROOT})
  foreach(dir IN LISTS arg_IMPORTS)
    list(APPEND include_flags -I${dir})
  endforeach()
  set(sources)
  foreach(file IN LISTS arg_FILES)
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc ${include_flags}
              --cpp_out=dllexport_decl=${arg_EXPORT_MACRO}:${out} ${arg_ROOT}/${file}
      DEPENDS ${arg_ROOT}/${file}
      COMMENT "protoc ${file}" VERBATIM)
    list(APPEND sources ${generated})
  endforeach()
  add_library(${target} OBJECT ${sources})
  add_custom_target(${target}_sources DEPENDS ${sources})
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  # Generated code is exported from the library that owns it.
  target_compile_definitions(${target} PUBLIC
    ${arg_EXPORT_MACRO}=__attribute__\(\(visibility\(\"default\"\)\)\))
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
endfunction()

# troupe_add_test(NAME KIND SOURCES... [LINK targets...] [LABELS ...] [TIMEOUT s])
# One Boost.Test executable and one ctest entry, labelled with its kind. It has the machine to itself,
# since many tests run several processes or threads against limits of time; a long one that does not
# may set RUN_SERIAL to OFF.
function(troupe_add_test name kind)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:troupe_test_main>)
  troupe_compile_options(${name})
  if(TROUPE_PCH)
    target_precompile_headers(${name} REUSE_FROM troupe_test_main)
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK} Boost::unit_test_framework)
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK
    TROUPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TROUPE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name} --log_level=test_suite)
  set_tests_properties(${name} PROPERTIES LABELS "${kind};${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    RUN_SERIAL ON ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# Compiles `target` against the headers of `other` without linking it: object libraries are linked
# once into a shared and once into a static form, each with its own kind of dependencies. `proto`
# are the generated headers that must exist first.
function(troupe_use_headers_of target other proto)
  target_include_directories(${target} PUBLIC
    $<TARGET_PROPERTY:${other},INTERFACE_INCLUDE_DIRECTORIES>)
  target_include_directories(${target} SYSTEM PUBLIC
    $<TARGET_PROPERTY:${other},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PUBLIC
    $<TARGET_PROPERTY:${other},INTERFACE_COMPILE_DEFINITIONS>)
  add_dependencies(${target} ${proto})
endfunction()

# troupe_library_pair(NAME OBJECTS ... PROTO ... INCLUDE ... INTERNAL_INCLUDE ... LINK ...
#                     [SHARED_LINK ...] [STATIC_LINK ...])
# NAME is the shared library with its public headers; NAME_static holds the same objects for tests
# of internals, which link only static forms, so that no descriptor is registered twice.
function(troupe_library_pair name)
  cmake_parse_arguments(arg "" "OBJECTS;PROTO"
    "INCLUDE;INTERNAL_INCLUDE;LINK;SHARED_LINK;STATIC_LINK" ${ARGN})
  set(objects $<TARGET_OBJECTS:${arg_OBJECTS}> $<TARGET_OBJECTS:${arg_PROTO}>)
  add_library(${name} SHARED ${objects})
  add_library(${name}_static STATIC ${objects})
  target_link_libraries(${name} PUBLIC ${arg_LINK} ${arg_SHARED_LINK})
  target_link_libraries(${name}_static PUBLIC ${arg_LINK} ${arg_STATIC_LINK})
  target_include_directories(${name}_static PUBLIC ${arg_INTERNAL_INCLUDE})
  foreach(target ${name} ${name}_static)
    troupe_compile_options(${target})
    target_include_directories(${target} PUBLIC ${arg_INCLUDE})
    target_include_directories(${target} SYSTEM PUBLIC
      $<TARGET_PROPERTY:${arg_PROTO},INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_definitions(${target} PUBLIC
      $<TARGET_PROPERTY:${arg_PROTO},INTERFACE_COMPILE_DEFINITIONS>)
  endforeach()
endfunction()

# troupe_add_plugin_manifest(TARGET PACKAGES...) writes `<library>.plugin` beside the library: the
# protobuf packages that the plugin owns, by which the loader finds it without loading it.
function(troupe_add_plugin_manifest target)
  list(JOIN ARGN "\n" packages)
  file(GENERATE OUTPUT $<TARGET_FILE_DIR:${target}>/$<TARGET_FILE_BASE_NAME:${target}>.plugin
    CONTENT "${packages}\n" TARGET ${target})
endfunction()
