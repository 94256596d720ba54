# fathom_unite(TARGET [MOST])
#
# With FATHOM_UNITY the C++ sources of a target are compiled together, 36 (or MOST) at most, so that
# the headers they share (JSON, Eigen, fmt, gtest) are read and instantiated once for most rooms. The
# release preset does so; a build for daily work does not, as there one changed file should compile
# alone. Files with compile options of their own always stay alone. Names in anonymous namespaces
# must therefore differ within a room.
function(fathom_unite target)
  set(most 36 ${ARGN})
  list(GET most -1 most)
  if(FATHOM_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${most})
  endif()
endfunction()

# fathom_unite_cuda(OUTPUT NAME source...)
#
# The same for CUDA files, which this CMake cannot do by itself: with FATHOM_UNITY one file NAME.cu
# that includes the sources is appended to the list OUTPUT, else the sources. nvcc reads the headers
# of a file for the host and for every architecture, which takes longer than most of the kernels.
function(fathom_unite_cuda output name)
  set(units ${ARGN})
  if(FATHOM_UNITY)
    list(TRANSFORM units REPLACE "(.+)" "#include \"\\1\"\n")
    string(JOIN "" text ${units})
    set(units ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}.cu)
    file(CONFIGURE OUTPUT ${units} CONTENT "${text}" @ONLY)
  endif()
  set(${output} ${${output}} ${units} PARENT_SCOPE)
endfunction()
