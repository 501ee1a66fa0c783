// The files of hardware/ as CMake compiled them in (src/cli/CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

struct HardwareText {
  std::string_view name;  // the file's, without .toml
  std::string_view text;
};

std::span<const HardwareText> hardware_texts();

}  // namespace lockstep::cli
