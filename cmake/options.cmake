# Compiler settings that every target of the project shares, and the two helpers that declare targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(handoff_options INTERFACE)
target_include_directories(handoff_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(handoff_options INTERFACE -Wall -Wextra -Werror -fno-omit-frame-pointer)
if(HANDOFF_SANITIZE)
  target_compile_options(handoff_options INTERFACE -fsanitize=${HANDOFF_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(handoff_options INTERFACE -fsanitize=${HANDOFF_SANITIZE})
endif()

# handoff_library(NAME SOURCES... [DEPENDS targets...]): one static library of the project.
function(handoff_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC handoff_options ${arg_DEPENDS})
endfunction()

# handoff_test(NAME SOURCES... [DEPENDS ...] [LABELS ...] [TIMEOUT s]): one doctest executable, one CTest entry.
function(handoff_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/support/doctest_main.cpp ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE handoff_options doctest::doctest ${arg_DEPENDS})
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
                                          WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
