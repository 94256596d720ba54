# embed_text(TARGET FILE SYMBOL)
#
# Compiles a text file of data/ into TARGET as `extern const std::string_view SYMBOL` in namespace
# fathom::embedded, so that the installed binary needs no data folder beside it.
function(embed_text target file symbol)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DSYMBOL=${symbol}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_text_script.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed_text_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
