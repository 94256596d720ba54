# embed_text(TARGET FILE SYMBOL)
#
# Compiles a text file of data/ into TARGET as `extern const std::string_view SYMBOL` in namespace
# fathom::embedded, so that the installed binary needs no data folder next to it.
#
# The file also belongs to a custom target of its own: Ninja makes a command wait for what all
# targets that need its output wait for, and this one waits for nothing. For TARGET alone it would
# wait until every library below had been linked, and all sources of TARGET with it.
function(embed_text target file symbol)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DSYMBOL=${symbol}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_text_script.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed_text_script.cmake
    VERBATIM)
  add_custom_target(${target}_${symbol} DEPENDS ${output})
  add_dependencies(${target} ${target}_${symbol})
  target_sources(${target} PRIVATE ${output})
endfunction()
