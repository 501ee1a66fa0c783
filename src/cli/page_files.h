// The files of web/ that a browser loads, compiled in (cli/CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

struct PageFile {
  std::string_view name;  // "page.js"
  std::string_view type;  // of the content
  std::string_view content;
};

std::span<const PageFile> page_files();

}  // namespace lockstep::cli
