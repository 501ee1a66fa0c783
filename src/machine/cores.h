// What this process may use of the machine's processors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::machine {

// CPU numbers of this process's scheduling affinity, ascending. Throws SystemError.
std::vector<int> allowed_cores();

// Where the kernel shows cgroups; tests point it at files of their own.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mount = "/sys/fs/cgroup";
};

// The smallest CPU quota (in CPUs' worth of time) of this process's cgroup and of every ancestor,
// version 2 (cpu.max) and version 1 (cpu.cfs_quota_us); nullopt where none is set or readable.
std::optional<double> cpu_quota(const CgroupFiles& files = {});

// Whole processors' worth of time that `cores` processors give under `quota`; at least 1.
int usable_cores(std::size_t cores, std::optional<double> quota);

}  // namespace lockstep::machine
