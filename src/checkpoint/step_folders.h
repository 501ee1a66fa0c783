// The folder that holds checkpoints: one folder per step, and nothing that could point at one that
// is not there. What begins with ".step-" is a writer's, or a dead writer's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

// "step-00000020", and the way back (nothing for another name).
std::string step_folder_name(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view name);

// The steps saved in `folder`, ascending; none when there is no such folder. Throws SystemError
// when it can't be read.
std::vector<std::int64_t> saved_steps(const std::string& folder);

// The names of unfinished and half-removed steps in `folder`.
std::vector<std::string> unfinished_steps(const std::string& folder);
std::string unfinished_name(std::int64_t step);

// Held while someone writes into a folder: one writer at a time, on every host that shares it. The
// system frees it with its process, so no dead writer holds one.
class FolderLock {
 public:
  // Throws Error naming the folder when another has it, SystemError when it can't be opened.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_;
};

}  // namespace lockstep::checkpoint
