# fathom_web_pages(FOLDER PAGE...)
#
# Builds the pages of web/ into HTML templates FOLDER/PAGE.html: packages by `npm ci` (pinned by
# web/package-lock.json, no install scripts), types made from the schemas, and a bundle by esbuild.
# Without tests the packages that only tests need are left out. The packages stay in
# web/node_modules, shared by all build folders.
find_program(NODE_PROGRAM NAMES node nodejs REQUIRED)
find_program(NPM_PROGRAM npm REQUIRED)
set(FATHOM_WEB_DIR ${CMAKE_SOURCE_DIR}/web)
if(FATHOM_TESTS)
  set(FATHOM_WEB_STAMP ${FATHOM_WEB_DIR}/node_modules/.installed-with-tests)
else()
  set(FATHOM_WEB_STAMP ${FATHOM_WEB_DIR}/node_modules/.installed)
endif()

function(fathom_web_pages folder)
  set(outputs "")
  foreach(page ${ARGN})
    list(APPEND outputs ${folder}/${page}.html)
  endforeach()
  set(omit "")
  if(NOT FATHOM_TESTS)
    set(omit --omit=dev)
  endif()
  add_custom_command(
    OUTPUT ${FATHOM_WEB_STAMP}
    COMMAND ${NPM_PROGRAM} ci --ignore-scripts --loglevel=error ${omit}
    COMMAND ${CMAKE_COMMAND} -E touch ${FATHOM_WEB_STAMP}
    DEPENDS ${FATHOM_WEB_DIR}/package.json ${FATHOM_WEB_DIR}/package-lock.json
    WORKING_DIRECTORY ${FATHOM_WEB_DIR}
    COMMENT "Fetching the packages of web/"
    VERBATIM)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${FATHOM_WEB_DIR}/src/*.ts ${FATHOM_WEB_DIR}/src/*.css ${FATHOM_WEB_DIR}/src/*.html)
  file(GLOB schemas CONFIGURE_DEPENDS ${FATHOM_WEB_DIR}/schema/*.schema.json)
  list(FILTER sources EXCLUDE REGEX "/src/generated/")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND ${NODE_PROGRAM} ${FATHOM_WEB_DIR}/build.mjs ${folder}
    DEPENDS ${FATHOM_WEB_STAMP} ${FATHOM_WEB_DIR}/build.mjs ${FATHOM_WEB_DIR}/generate_types.mjs
            ${schemas} ${sources}
    WORKING_DIRECTORY ${FATHOM_WEB_DIR}
    COMMENT "Bundling the pages of web/"
    VERBATIM)
endfunction()
