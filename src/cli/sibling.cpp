#include "cli/sibling.h"

#include "lockstep/error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace lockstep::cli {

std::string find_sibling(const std::string& name) {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  const std::string path = (self.parent_path() / name).string();
  if (failure || ::access(path.c_str(), X_OK) != 0) {
    throw SystemError(path + " is missing; it needs LibTorch, build it with ./quickstart");
  }
  return path;
}

void become_sibling(const std::string& name, std::vector<std::string> arguments) {
  std::string path = find_sibling(name);
  std::vector<char*> words{path.data()};
  for (std::string& argument : arguments) {
    words.push_back(argument.data());
  }
  words.push_back(nullptr);
  ::execv(path.c_str(), words.data());
  throw SystemError(path + " can't be executed: " + std::strerror(errno));
}

}  // namespace lockstep::cli
