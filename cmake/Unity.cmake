# fathom_unite(TARGET)
#
# With FATHOM_UNITY the C++ sources of a target are compiled ten at a time, so that the headers they
# share (JSON, Eigen, fmt, gtest) are read and instantiated once for ten files. The release preset
# does so; a build for daily work does not, where one changed file should compile alone. Files with
# compile options of their own, and the kernels, always stay alone. Names in anonymous namespaces
# must therefore differ within a room.
function(fathom_unite target)
  if(FATHOM_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
  endif()
endfunction()

# fathom_unite_cuda(OUTPUT source...)
#
# The same for CUDA files, three at a time, which this CMake cannot do by itself: with FATHOM_UNITY
# OUTPUT becomes a list of files that include the sources, else the sources. nvcc reads the headers
# of a file for the host and for every architecture, which takes longer than most of the kernels.
function(fathom_unite_cuda output)
  if(NOT FATHOM_UNITY)
    set(${output} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units "")
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} 3)
    list(SUBLIST ARGN ${first} 3 together)
    list(TRANSFORM together REPLACE "(.+)" "#include \"\\1\"\n")
    string(JOIN "" text ${together})
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/unity/cuda_${first}.cu)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  set(${output} ${units} PARENT_SCOPE)
endfunction()
