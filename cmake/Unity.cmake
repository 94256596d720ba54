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
