#include "checkpoint/writable_file.h"

#include "lockstep/error.h"

#include <filesystem>
#include <unistd.h>

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

void check_writable_file(const std::string& option, const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw UsageError(option + " " + path + ": is a folder; name a file in it");
  }
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw UsageError(option + " " + path + ": is no regular file; name one, or a new one");
  }
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError(option + " " + path + ": folder " + folder.string() +
                     " does not exist; make it first");
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw UsageError(option + " " + path + ": folder " + folder.string() +
                     " can't be written; choose another");
  }
}

}  // namespace lockstep::checkpoint
