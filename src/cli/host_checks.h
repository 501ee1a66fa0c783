// What `lockstep doctor` asks the kernel: processors, memory, limits.
#pragma once

#include "cli/finding.h"
#include "machine/file_tree.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// What is looked at; tests make up their own.
struct Host {
  machine::FileTree files;
  std::string kernel;      // "Linux 6.1.0 x86_64"
  std::string c_library;   // "glibc 2.36"
  std::vector<int> cores;  // of the affinity, ascending
  // Soft limits; nullopt: none.
  std::optional<std::int64_t> open_files;
  std::optional<std::int64_t> locked_bytes;
  std::optional<std::int64_t> dev_shm_bytes;  // nullopt: not mounted
  std::string shared_memory_refusal;          // why a memfd can't be mapped; empty: it can
};

// Throws SystemError when the affinity can't be read.
Host this_host();

std::vector<Finding> check_host(const Host& host);

}  // namespace lockstep::cli
