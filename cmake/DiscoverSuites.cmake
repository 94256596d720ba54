# fathom_discover_suites(TARGET)
#
# One ctest test for each suite of a gtest program. CMake's own gtest_discover_tests makes one for
# each test, and starting two thousand programs takes longer than most of what they test. The program
# lists its suites after it is linked.
function(fathom_discover_suites target)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DOUTPUT=${list}
            -P ${CMAKE_SOURCE_DIR}/cmake/discover_suites_script.cmake
    BYPRODUCTS ${list}
    VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list})
endfunction()
