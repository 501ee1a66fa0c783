# How every target of the project is compiled, and the shapes targets come in.

# Settings of our own code; users of the library inherit only what its headers need.
add_library(lockstep_settings INTERFACE)
target_compile_features(lockstep_settings INTERFACE cxx_std_20)
target_compile_options(lockstep_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror
                       # The summation tree promises bits: no contraction, on any target.
                       -ffp-contract=off
                       # GCC 12 sees overlap in "literal" + std::string (its bug 105651).
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(lockstep_settings INTERFACE "${PROJECT_SOURCE_DIR}/src"
                           "${PROJECT_SOURCE_DIR}/include")
target_compile_definitions(lockstep_settings INTERFACE LOCKSTEP_VERSION="${PROJECT_VERSION}")
if(LOCKSTEP_SANITIZE)
  # With -O1 -g1 instrumented LibTorch headers compile in half the time, and reports keep their
  # lines. GCC warns of uninitialised values that instrumentation makes up (its manual says so).
  target_compile_options(lockstep_settings INTERFACE -fsanitize=${LOCKSTEP_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all -O1 -g1
                         -Wno-maybe-uninitialized)
  target_link_options(lockstep_settings INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE AND LOCKSTEP_IS_TOP)
  # Precompiled headers need the sloppiness; base_dir and nohashdir let a second clone of the
  # project reuse what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_SLOPPINESS=pch_defines,time_macros"
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${LOCKSTEP_CCACHE}")
endif()

# A source with LibTorch's headers costs 6 s before its first line (templates that a precompiled
# header does not instantiate), so such sources are compiled several at a time.
option(LOCKSTEP_UNITY "Compile sources with LibTorch several at a time" ON)

# Lets a target that links lockstep_torch, directly or through one of our layers, share the one
# precompiled torch/torch.h (LockstepTorch.cmake). The three functions below call it.
function(lockstep_use_torch name)
  foreach(item IN LISTS ARGN)
    if(TARGET "${item}")
      get_target_property(uses_torch "${item}" LOCKSTEP_USES_TORCH)
      if(uses_torch)
        set_target_properties(${name} PROPERTIES LOCKSTEP_USES_TORCH ON)
        # GCC reads a precompiled header only under the options it was made with.
        target_compile_options(${name} PRIVATE -fPIC)
        target_precompile_headers(${name} REUSE_FROM lockstep_torch_precompiled)
        set_target_properties(${name} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY}
                              UNITY_BUILD_BATCH_SIZE 6)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# lockstep_layer(NAME SOURCES... LINK...): one folder of src/ as an object library.
function(lockstep_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(lockstep_${name} OBJECT ${ARG_SOURCES})
  set_target_properties(lockstep_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(lockstep_${name} PUBLIC lockstep_settings ${ARG_LINK})
  lockstep_use_torch(lockstep_${name} ${ARG_LINK})
endfunction()

# lockstep_program(NAME SOURCES... LINK...): an executable that lands in build/.
function(lockstep_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE lockstep_settings ${ARG_LINK})
  lockstep_use_torch(${name} ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

# lockstep_test(NAME SOURCES... LINK... [TIMEOUT s] [LABELS l] [ENVIRONMENT V=x] [PROCESSORS n]):
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
  target_link_libraries(${name} PRIVATE lockstep_settings ${ARG_LINK} lockstep_test_leaks
                        GTest::gtest GTest::gtest_main)
  lockstep_use_torch(${name} ${ARG_LINK})
  set(properties TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS})
  foreach(property LABELS ENVIRONMENT)
    if(ARG_${property})
      list(APPEND properties ${property} "${ARG_${property}}")
    endif()
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
                       PROPERTIES ${properties})
endfunction()

# lockstep_python_tests(NAME FILE [TIMEOUT s] [ENVIRONMENT V=x ...]): the cases of a unittest
# file, one ctest test each.
function(lockstep_python_tests name file)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(path "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(STRINGS "${path}" lines REGEX "^class .*Test\\(|^    def test_")
  foreach(line IN LISTS lines)
    if(line MATCHES "^class ([A-Za-z]+)")
      set(class "${CMAKE_MATCH_1}")
    elseif(line MATCHES "def (test_[a-z0-9_]+)")
      set(test "${name}.${class}.${CMAKE_MATCH_1}")
      add_test(NAME "${test}"
               COMMAND Python3::Interpreter -B "${path}" "${class}.${CMAKE_MATCH_1}")
      set_tests_properties("${test}" PROPERTIES TIMEOUT ${ARG_TIMEOUT}
                           ENVIRONMENT "${ARG_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()
