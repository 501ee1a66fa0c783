// The memfds behind this process's shared memory: what the kernel has allocated for them, against
// what is resident.
#pragma once

#include "lockstep/group.h"

#include <cstdint>
#include <vector>

namespace lockstep::train {

struct SharedFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;  // allocated (st_blocks), whatever the file's size
  auto operator<=>(const SharedFile&) const = default;
};

// Lockstep's memfds that this process has open, in order. Throws SystemError without /proc.
std::vector<SharedFile> shared_files();

// Collective, of ranks on one host: bytes of all files that any rank found, each file once with the
// most that a rank saw of it.
std::int64_t host_bytes(Group& group, const std::vector<SharedFile>& found);

}  // namespace lockstep::train
