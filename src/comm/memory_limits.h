// What memory this host and the control groups above this process still allow.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::comm {

// Where the figures stand; other paths in tests.
struct HostFiles {
  std::string memory_information = "/proc/meminfo";
  std::string control_groups_of_process = "/proc/self/cgroup";
  std::string control_groups = "/sys/fs/cgroup";
};

struct MemoryRoom {
  std::int64_t bytes = 0;
  std::string limited_by;  // "MemAvailable of the host", "limit of control group /a/b (…)"
};

// The least of MemAvailable and, for each control group from this process's up to the root,
// version 1 and 2, its limit less its usage, where page cache that can be dropped is not usage.
// What cannot be read does not limit.
MemoryRoom memory_room(const HostFiles& files = {});

// Throws SystemError with the numbers when `bytes` (for `what`) do not fit.
void require_memory(std::int64_t bytes, const std::string& what, const HostFiles& files = {});

}  // namespace lockstep::comm
