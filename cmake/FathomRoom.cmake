# fathom_room(NAME [HOT|COLD] USES room... LINKS library...)
#
# A room is one folder of src/ and one static library, fathom_NAME. USES is the complete list of
# rooms whose headers it may include. A release compiles rooms with -O1: with -O2 a fit takes as
# long and compiling takes a third longer. HOT ones, whose plain loops over numbers should become
# vector code, get -O3; COLD ones, which call others to do the work, get -Og, which saves a quarter
# of the compile time (a fit then takes 1.4 times as long, experiments of the lab 2.5 times).
#
# fathom_part(PATTERN USES folder...)     files inside a room and the folders of it they may include
# fathom_users(FOLDER USES room...)       code outside src/ and the rooms it may include
#
# The rules are written to rooms.txt in the build folder, and tests/architecture checks every
# #include of the tree against them.
set_property(GLOBAL PROPERTY FATHOM_ROOM_RULES "")

function(fathom_room name)
  cmake_parse_arguments(ROOM "HOT;COLD" "" "USES;LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(fathom_${name} STATIC ${sources})
  target_include_directories(fathom_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(used IN LISTS ROOM_USES)
    target_link_libraries(fathom_${name} PUBLIC fathom_${used})
  endforeach()
  target_link_libraries(fathom_${name} PUBLIC ${ROOM_LINKS} OpenMP::OpenMP_CXX)
  fathom_unite(fathom_${name})
  set(level -O1)
  if(ROOM_HOT)
    set(level -O3)
  elseif(ROOM_COLD)
    set(level -Og)
  endif()
  fathom_use_precompiled(fathom_${name} rooms ${level})
  string(JOIN " " used_rooms ${ROOM_USES})
  set_property(GLOBAL APPEND PROPERTY FATHOM_ROOM_RULES "${name}: ${used_rooms}")
endfunction()

function(fathom_rule kind name)
  cmake_parse_arguments(RULE "" "" "USES" ${ARGN})
  string(JOIN " " used ${RULE_USES})
  set_property(GLOBAL APPEND PROPERTY FATHOM_ROOM_RULES "${kind} ${name}: ${used}")
endfunction()

function(fathom_part pattern)
  fathom_rule(part ${pattern} ${ARGN})
endfunction()

function(fathom_users folder)
  fathom_rule(users ${folder} ${ARGN})
endfunction()

function(fathom_write_room_rules)
  get_property(rules GLOBAL PROPERTY FATHOM_ROOM_RULES)
  string(JOIN "\n" text ${rules})
  file(WRITE ${CMAKE_BINARY_DIR}/rooms.txt "${text}\n")
endfunction()
