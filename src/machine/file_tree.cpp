#include "machine/file_tree.h"

#include <system_error>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lockstep::machine {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kBlank = " \t\n";
  const auto first = text.find_first_not_of(kBlank);
  return first == std::string::npos ? std::string()
                                    : text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

}  // namespace

std::optional<std::string> FileTree::text(const std::string& name) const {
  std::error_code ignored;
  std::ifstream file(path(name));
  if (!file || std::filesystem::is_directory(path(name), ignored)) {
    return std::nullopt;
  }
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

std::optional<std::string> FileTree::first_line(const std::string& name) const {
  const auto whole = text(name);
  return whole ? std::optional(whole->substr(0, whole->find('\n'))) : std::nullopt;
}

std::vector<std::string> FileTree::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry(path(folder), failure), end;
       !failure && entry != end; entry.increment(failure)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> FileTree::value_of(const std::string& name,
                                              const std::string& key) const {
  std::istringstream lines(text(name).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == key) {
      return trimmed(line.substr(colon + 1));
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::machine
