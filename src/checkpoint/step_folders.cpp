#include "checkpoint/step_folders.h"

#include "base/quantity.h"
#include "lockstep/error.h"

#include <sys/file.h>
#include <system_error>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinishedPrefix = ".step-";
constexpr std::size_t kDigits = 8;  // at least; so that names sort as steps do

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw SystemError(folder + ": can't be read as a folder of checkpoints: " + error.message());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string step_folder_name(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(kPrefix) + std::string(kDigits - std::min(kDigits, digits.size()), '0') +
         digits;
}

std::optional<std::int64_t> step_of(std::string_view name) {
  const auto step = name.starts_with(kPrefix) ? quantity::whole(name.substr(kPrefix.size()))
                                              : std::optional<std::int64_t>();
  return step && *step >= 0 && step_folder_name(*step) == name ? step : std::nullopt;
}

std::vector<std::int64_t> saved_steps(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(folder)) {
    if (const auto step = step_of(name)) {
      steps.push_back(*step);
    }
  }
  std::ranges::sort(steps);
  return steps;
}

std::vector<std::string> unfinished_steps(const std::string& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names,
                [](const std::string& name) { return !name.starts_with(kUnfinishedPrefix); });
  return names;
}

std::string unfinished_name(std::int64_t step) { return "." + step_folder_name(step); }

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw SystemError(folder + ": can't be opened: " + std::strerror(errno));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(descriptor_);
    if (error == EWOULDBLOCK) {
      throw Error(folder + ": another process is saving into it; give each run its own folder");
    }
    throw SystemError(folder + ": can't be locked: " + std::strerror(error));
  }
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace lockstep::checkpoint
