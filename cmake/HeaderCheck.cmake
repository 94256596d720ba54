# fathom_header_check(TARGET LINKS library...)
#
# Compiles every header of src/ alone, without precompiled headers: one file per header that includes
# nothing else. Not part of the default build, where it would take a fifth of the time: tools/check.sh
# runs the commands of the headers that changed, or all of them with --all. Headers of the CUDA
# backend need the toolkit's; device headers (.cuh) are left to nvcc.
function(fathom_header_check target)
  cmake_parse_arguments(CHECK "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src
    ${CMAKE_SOURCE_DIR}/src/*.h)
  if(NOT FATHOM_CUDA)
    list(FILTER headers EXCLUDE REGEX "^engine/cuda/")
  endif()
  set(sources "")
  foreach(header IN LISTS headers)
    set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${target} PRIVATE ${CHECK_LINKS})
  # What the build defines for the kernels; -O0 because none of it ever runs.
  target_compile_definitions(${target} PRIVATE FATHOM_ISA=portable FATHOM_LANES=4)
  target_compile_options(${target} PRIVATE -O0)
  if(FATHOM_CUDA)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endfunction()
