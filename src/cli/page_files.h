// The files of web/ that a browser loads, compiled in (cli/CMakeLists.txt).
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace lockstep::cli {

struct PageFile {
  std::string_view path;  // "/page.js"
  std::string_view type;  // of the content
  std::string_view content;
};

std::span<const PageFile> plan_page_files();
std::span<const PageFile> dash_page_files();

// nullptr: there is none.
inline const PageFile* find_file(std::span<const PageFile> files, std::string_view path) {
  const auto found = std::ranges::find(files, path, &PageFile::path);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace lockstep::cli
