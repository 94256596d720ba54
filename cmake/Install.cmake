# cmake --install and the Debian packages (cpack -G DEB, run in the build folder).
#
#   program    fathom, manual pages, completion for bash, zsh and fish, licence    package fathom
#   cuda       the CUDA module, found by the program in ../lib                      package fathom-cuda
#
# Pages and completion come from the program that is being installed, so they never fall behind it.
# Libraries the program needs become dependencies by dpkg-shlibdeps. cuBLASLt comes from NVIDIA's
# repository, which dpkg-shlibdeps does not know, so fathom-cuda names its package.
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # install and pack what is built, without the tests

install(TARGETS fathom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fathom
  RENAME copyright COMPONENT program)
if(FATHOM_CUDA)
  install(TARGETS fathom_cuda LIBRARY DESTINATION lib COMPONENT cuda)
endif()

set(fathom_generated ${CMAKE_BINARY_DIR}/install)
install(CODE "
  set(fathom_binary \"$<TARGET_FILE:fathom>\")
  set(fathom_pages \"${fathom_generated}\")
  set(fathom_share \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
" COMPONENT program)
install(CODE [[
  file(REMOVE_RECURSE "${fathom_pages}")
  file(MAKE_DIRECTORY "${fathom_pages}")
  execute_process(COMMAND "${fathom_binary}" man "${fathom_pages}/man1" OUTPUT_QUIET
    COMMAND_ERROR_IS_FATAL ANY)
  foreach(shell bash zsh fish)
    execute_process(COMMAND "${fathom_binary}" completion ${shell}
      OUTPUT_FILE "${fathom_pages}/${shell}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB pages "${fathom_pages}/man1/*.1")
  find_program(GZIP_PROGRAM gzip)
  if(GZIP_PROGRAM)  # as Debian's policy asks
    execute_process(COMMAND ${GZIP_PROGRAM} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB pages "${fathom_pages}/man1/*.1.gz")
  endif()
  file(INSTALL ${pages} DESTINATION "${fathom_share}/man/man1")
  file(INSTALL "${fathom_pages}/bash" DESTINATION "${fathom_share}/bash-completion/completions"
    RENAME fathom)
  file(INSTALL "${fathom_pages}/zsh" DESTINATION "${fathom_share}/zsh/vendor-completions"
    RENAME _fathom)
  file(INSTALL "${fathom_pages}/fish" DESTINATION "${fathom_share}/fish/vendor_completions.d"
    RENAME fathom.fish)
]] COMPONENT program)

set(CPACK_PACKAGE_CONTACT "The Fathom authors <fathom@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME fathom)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "Plans the depth and width of transformers from published laws with exact\ncounts, trains grids of them and fits their laws.")
if(FATHOM_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME fathom-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS
    "fathom (= ${PROJECT_VERSION}), libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}")
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "Training on NVIDIA GPUs for fathom.")
endif()
include(CPack)
