# How every target of the project is compiled, and the shapes targets come in.

# Settings of our own code; users of the library inherit only what its headers need.
add_library(lockstep_settings INTERFACE)
target_compile_features(lockstep_settings INTERFACE cxx_std_20)
target_compile_options(lockstep_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror
                       # The summation tree promises bits: no contraction, on any target.
                       -ffp-contract=off)
target_include_directories(lockstep_settings INTERFACE "${PROJECT_SOURCE_DIR}/src"
                           "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(lockstep_settings INTERFACE LOCKSTEP_VERSION="${PROJECT_VERSION}")
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_settings INTERFACE -fsanitize=${LOCKSTEP_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(lockstep_settings INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE AND LOCKSTEP_IS_TOP)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${LOCKSTEP_CCACHE}")
endif()

# lockstep_layer(NAME SOURCES... LINK...): one folder of src/ as an object library.
function(lockstep_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(lockstep_${name} OBJECT ${ARG_SOURCES})
  set_target_properties(lockstep_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(lockstep_${name} PUBLIC lockstep_settings ${ARG_LINK})
endfunction()

# lockstep_program(NAME SOURCES... LINK...): an executable that lands in build/.
function(lockstep_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lockstep_settings ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# lockstep_test(NAME SOURCES... LINK... [TIMEOUT s] [LABELS ...] [PROCESSORS n]):
# a GoogleTest program; ctest sees each of its tests. PROCESSORS 2 keeps tests that start
# several ranks from running beside each other.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE lockstep_settings ${ARG_LINK} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS} LABELS "${ARG_LABELS}"
               ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
