# Finds LibTorch: LIBTORCH (environment or cache), CMAKE_PREFIX_PATH, then the wheel in .deps/.
if(NOT LOCKSTEP_TORCH)
  return()
endif()
if(NOT LIBTORCH AND DEFINED ENV{LIBTORCH})
  set(LIBTORCH "$ENV{LIBTORCH}")
endif()
file(GLOB LOCKSTEP_WHEEL "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/torch")
if(LIBTORCH)
  list(PREPEND CMAKE_PREFIX_PATH "${LIBTORCH}")
elseif(LOCKSTEP_WHEEL)
  list(APPEND CMAKE_PREFIX_PATH "${LOCKSTEP_WHEEL}/share/cmake")
endif()
find_package(Torch QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "LibTorch not found: run scripts/setup, or set LIBTORCH=/path/to/libtorch "
                      "(or -DLOCKSTEP_TORCH=OFF for comm and plan alone)")
endif()

# What includes torch/torch.h links this: LibTorch's headers count as system headers (our warnings
# are errors, theirs are not ours to fix) and are precompiled once.
add_library(lockstep_torch INTERFACE)
target_link_libraries(lockstep_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(lockstep_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
set_target_properties(lockstep_torch PROPERTIES LOCKSTEP_USES_TORCH ON)

# A source with torch/torch.h costs 15 s, one with it precompiled 4 s; making it costs 30 s once.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/torch_precompiled.cpp" CONTENT "")
add_library(lockstep_torch_precompiled OBJECT "${PROJECT_BINARY_DIR}/torch_precompiled.cpp")
target_compile_options(lockstep_torch_precompiled PRIVATE -fPIC)
target_link_libraries(lockstep_torch_precompiled PRIVATE lockstep_settings lockstep_torch)
target_precompile_headers(lockstep_torch_precompiled PRIVATE <torch/torch.h>)
