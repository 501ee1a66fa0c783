#include "data/text_source.h"

#include "base/environment.h"
#include "lockstep/error.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace lockstep::data {

std::string resolve(const std::string& data) {
  if (data != "text") {
    return data;
  }
  if (const auto own = environment::text("LOCKSTEP_TEXT")) {
    return *own;
  }
  if (!std::filesystem::exists(LOCKSTEP_DEFAULT_TEXT)) {
    throw UsageError("--data text: " LOCKSTEP_DEFAULT_TEXT
                     " does not exist; run scripts/setup, or set LOCKSTEP_TEXT to a text file");
  }
  return LOCKSTEP_DEFAULT_TEXT;
}

TextSource inspect(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw UsageError("--data " + path + ": can't be opened (" + std::strerror(errno) +
                     "); give a text file, or 'text' for the plays that scripts/setup prepares");
  }
  if (!S_ISREG(status.st_mode)) {
    throw UsageError("--data " + path +
                     (S_ISDIR(status.st_mode) ? ": is a folder" : ": is no file") +
                     "; expected one text file");
  }
  if (::access(path.c_str(), R_OK) != 0) {
    throw UsageError("--data " + path + ": can't be read (" + std::strerror(errno) +
                     "); check its permissions");
  }
  if (status.st_size == 0) {
    throw UsageError("--data " + path + ": is empty; expected text to train on");
  }
  return {std::filesystem::absolute(path).string(), status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace lockstep::data
