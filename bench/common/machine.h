// The machine a bench ran on and when: a figure without them compares with nothing.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::bench {

struct Machine {
  std::string cpu;                          // as the kernel names it
  int cores = 0;                            // that are online
  std::int64_t last_level_cache_bytes = 0;  // of all sockets; 0 where the kernel does not say
  std::int64_t memory_bytes = 0;
};

Machine this_machine();

// "AMD EPYC, 2 cores, 32 MiB of last-level cache, 23.5 GiB of memory, 2026-01-31 12:00 UTC".
std::string describe(const Machine& machine);

}  // namespace lockstep::bench
