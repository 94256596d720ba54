# fathom_precompile(NAME HEADERS header... LINKS library... [OPTIONS option...])
# fathom_use_precompiled(TARGET NAME OPENMP)
#
# Precompiled headers that many targets share. GCC takes them only with the same code generation
# flags (-O1 to -O3 and warnings may differ, -O0 may not), so there is one form with OpenMP and one
# without.
function(fathom_precompile name)
  cmake_parse_arguments(PCH "" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
  if(NOT FATHOM_PCH)
    return()
  endif()
  foreach(openmp OFF ON)
    set(target pch_${name}_${openmp})
    add_library(${target} OBJECT ${CMAKE_SOURCE_DIR}/cmake/empty.cpp)
    target_link_libraries(${target} PRIVATE ${PCH_LINKS} $<$<BOOL:${openmp}>:OpenMP::OpenMP_CXX>)
    target_compile_options(${target} PRIVATE ${PCH_OPTIONS})
    target_precompile_headers(${target} PRIVATE ${PCH_HEADERS})
  endforeach()
endfunction()

function(fathom_use_precompiled target name openmp)
  if(FATHOM_PCH)
    target_precompile_headers(${target} REUSE_FROM pch_${name}_${openmp})
  endif()
endfunction()

fathom_precompile(rooms LINKS fmt::fmt HEADERS
  <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span>
  <string> <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
