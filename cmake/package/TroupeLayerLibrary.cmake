# troupe_add_layer_library(NAME SOURCES...): the library NAME.so of kinds of layers, which a job names
# in `layer_libraries`. One of its sources has a TROUPE_LAYER_LIBRARY.
function(troupe_add_layer_library name)
  if(NOT TARGET troupe::layers)
    message(FATAL_ERROR "this Troupe was built without LibTorch, which layers are written with")
  endif()
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE troupe::layers)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()
