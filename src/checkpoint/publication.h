// Saving one step: files into a folder that nobody looks at, then one rename, so that a step is
// there whole or not at all, whenever a writer dies.
#pragma once

#include "checkpoint/file_system.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/step_folders.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

// Where the ranks of a job write a step's files before it is published.
std::string unfinished_path(const std::string& folder, std::int64_t step);

// Writes one file of a step, durable once this returns; any rank, all at the same time. Throws
// SystemError naming the file and how far it got.
FileEntry write_share(FileSystem& files, const std::string& unfinished, const std::string& name,
                      std::vector<NamedTensor> pieces);

// The part of one process: rank 0.
class Publication {
 public:
  // Makes `folder` when it is not there, locks it, removes what dead writers left, and makes the
  // unfinished folder. Throws Error when another process saves into it, SystemError.
  Publication(FileSystem& files, std::string folder, std::int64_t step);
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  // Removes the unfinished folder unless published.
  ~Publication();

  // Adds the manifest to the files that are there and gives the folder its name, replacing a step
  // saved before. Returns its path. Once only.
  std::string publish(const Manifest& manifest);
  // Removes the oldest steps until `count` ≥ 1 are left.
  void keep_newest(std::int64_t count);

 private:
  void remove_unfinished();

  FileSystem& files_;
  std::string folder_;
  std::int64_t step_;
  FolderLock lock_;
};

}  // namespace lockstep::checkpoint
