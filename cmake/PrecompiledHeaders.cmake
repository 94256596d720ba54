# fathom_precompile(NAME LEVEL HEADERS header... LINKS library...)
# fathom_use_precompiled(TARGET NAME LEVEL)
#
# Precompiled headers that many targets share. GCC accepts them only with the same code generation
# flags, which is why every room is compiled with OpenMP, though few use it. And it compiles what
# includes them at the optimisation level they were built with, whatever the command line says: so
# there is one form for each level, and a target sets its level here and nowhere else. Only a
# release build has levels. Where the files of a room are compiled together (FATHOM_UNITY) a room
# has nothing to share: building the headers takes longer than they save. Tests do: they are twenty
# programs.
function(fathom_precompile name level)
  cmake_parse_arguments(PCH "" "" "HEADERS;LINKS" ${ARGN})
  if(NOT FATHOM_PCH)
    return()
  endif()
  set(target pch_${name}${level})
  add_library(${target} OBJECT ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
  target_link_libraries(${target} PRIVATE ${PCH_LINKS} OpenMP::OpenMP_CXX)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  target_precompile_headers(${target} PRIVATE ${PCH_HEADERS})
endfunction()

function(fathom_use_precompiled target name level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  if(TARGET pch_${name}${level})
    target_precompile_headers(${target} REUSE_FROM pch_${name}${level})
  endif()
endfunction()

if(NOT FATHOM_UNITY)
  foreach(level -Og -O1 -O3)
    fathom_precompile(rooms ${level} LINKS fmt::fmt HEADERS
      <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional>
      <span> <string> <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  endforeach()
endif()
