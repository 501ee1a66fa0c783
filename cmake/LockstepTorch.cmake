# Finds LibTorch: LIBTORCH (environment or cache), CMAKE_PREFIX_PATH, then the wheel in .deps/.
if(NOT LOCKSTEP_TORCH)
  return()
endif()
set(LIBTORCH "$ENV{LIBTORCH}" CACHE PATH "An own LibTorch: the folder with share/cmake/Torch")
if(NOT LIBTORCH STREQUAL LOCKSTEP_LIBTORCH_BEFORE)
  # LibTorch's configuration remembers its parts; another LibTorch needs others.
  unset(Torch_DIR CACHE)
  unset(TORCH_LIBRARY CACHE)
  unset(C10_LIBRARY CACHE)
endif()
set(LOCKSTEP_LIBTORCH_BEFORE "${LIBTORCH}" CACHE INTERNAL "LIBTORCH when Torch_DIR was found")

# LibTorch warns that it was built without kineto; nothing here profiles with it.
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
if(LIBTORCH)
  find_package(Torch 2.11 QUIET PATHS "${LIBTORCH}" NO_DEFAULT_PATH)
else()
  # Not the system's folders: Debian's libtorch-dev is years older than what this needs.
  file(GLOB LOCKSTEP_WHEEL "${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages/torch")
  find_package(Torch 2.11 QUIET NO_CMAKE_SYSTEM_PATH PATHS "${LOCKSTEP_WHEEL}")
endif()
unset(CMAKE_MESSAGE_LOG_LEVEL)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "LibTorch 2.11 or newer not found: run scripts/setup, or set "
                      "LIBTORCH=/path/to/libtorch (or -DLOCKSTEP_TORCH=OFF for comm and plan alone)")
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
