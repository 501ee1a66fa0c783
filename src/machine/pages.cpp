#include "machine/pages.h"

namespace lockstep::machine {
namespace {

std::optional<std::string> chosen_word(const FileTree& files, const std::string& name) {
  const auto line = files.first_line("/sys/kernel/mm/transparent_hugepage/" + name);
  const auto begin = line ? line->find('[') : std::string::npos;
  const auto end = line ? line->find(']') : std::string::npos;
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return std::nullopt;
  }
  return line->substr(begin + 1, end - begin - 1);
}

}  // namespace

std::optional<std::string> private_pages(const FileTree& files) {
  return chosen_word(files, "enabled");
}

std::optional<std::string> shared_pages(const FileTree& files) {
  return chosen_word(files, "shmem_enabled");
}

bool may_use_huge_pages(const std::optional<std::string>& setting) {
  return !setting || (*setting != "never" && *setting != "deny");
}

}  // namespace lockstep::machine
