# Script half of DiscoverSuites.cmake: the suites of PROGRAM as tests for ctest, written to OUTPUT.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing
  TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[^ \n][^ \n]*\\." suites "${listing}")
if(NOT suites)
  message(FATAL_ERROR "${PROGRAM} lists no tests")
endif()
# Suites of two programs may have the same name.
get_filename_component(room ${PROGRAM} NAME)
string(REGEX REPLACE "_test$" "" room ${room})
# Several programs at once share the cores (src/engine/cpu/thread_waiting.h); with both settings there,
# a fathom that a test starts need not re-execute itself.
set(properties "SKIP_RETURN_CODE 77 ENVIRONMENT \"GOMP_SPINCOUNT=1000;OPENBLAS_NUM_THREADS=1\"")
set(text "")
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  string(REGEX REPLACE "\\.$" "" name "${room}.${suite}")
  string(APPEND text "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}*]=])\n")
  string(APPEND text "set_tests_properties([=[${name}]=] PROPERTIES ${properties})\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
