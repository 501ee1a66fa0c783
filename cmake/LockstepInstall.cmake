# The libraries that users link, made of the layers, and their installation:
#   Lockstep::comm      groups and collectives       no LibTorch
#   Lockstep::plan      predictions                  no LibTorch
#   Lockstep::lockstep  everything up to training a module
# The same names in this build, under add_subdirectory and after find_package.
include(CMakePackageConfigHelpers)

# lockstep_library(NAME EXPORT set LAYERS... LINK...): a static library of whole layers.
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "EXPORT" "LAYERS;LINK" ${ARGN})
  list(TRANSFORM ARG_LAYERS REPLACE "(.+)" "$<TARGET_OBJECTS:lockstep_\\1>" OUTPUT_VARIABLE objects)
  add_library(lockstep_library_${name} STATIC ${objects})
  add_library(Lockstep::${name} ALIAS lockstep_library_${name})
  set_target_properties(lockstep_library_${name} PROPERTIES EXPORT_NAME ${name}
                        OUTPUT_NAME lockstep_${name} LINKER_LANGUAGE CXX)
  target_compile_features(lockstep_library_${name} INTERFACE cxx_std_20)
  target_include_directories(lockstep_library_${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(lockstep_library_${name} INTERFACE ${ARG_LINK})
  install(TARGETS lockstep_library_${name} EXPORT ${ARG_EXPORT}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

lockstep_library(base EXPORT LockstepCore LAYERS base)
lockstep_library(comm EXPORT LockstepCore LAYERS comm comm_kernels
                 LINK Lockstep::base PkgConfig::HWY Threads::Threads)
lockstep_library(plan EXPORT LockstepCore LAYERS plan LINK Lockstep::base)
if(LOCKSTEP_TORCH)
  # An installed one gets LibTorch from LockstepConfig.cmake: its targets carry absolute paths.
  lockstep_library(lockstep EXPORT LockstepTorch LAYERS optim parallel checkpoint checkpoint_state
                   LINK Lockstep::comm Lockstep::plan $<BUILD_INTERFACE:lockstep_torch>)
endif()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
file(GLOB headers "${PROJECT_SOURCE_DIR}/include/lockstep/*.h")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" needs_torch REGEX "include <torch/|include \"lockstep/optim.h\"")
  if(LOCKSTEP_TORCH OR NOT needs_torch)
    install(FILES "${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/lockstep")
  endif()
endforeach()
install(EXPORT LockstepCore NAMESPACE Lockstep:: DESTINATION "${package}")
if(LOCKSTEP_TORCH)
  install(EXPORT LockstepTorch NAMESPACE Lockstep:: DESTINATION "${package}")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/LockstepConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/LockstepConfig.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/LockstepConfig.cmake"
        "${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake" DESTINATION "${package}")
