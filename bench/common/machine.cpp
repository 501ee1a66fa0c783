#include "bench/common/machine.h"

#include "machine/processors.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <unistd.h>

namespace lockstep::bench {
namespace {

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

}  // namespace

Machine this_machine() {
  return {.cpu = machine::cpu_name(),
          .cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
          .last_level_cache_bytes = machine::last_level_cache_bytes(),
          .memory_bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE))};
}

std::string describe(const Machine& machine) {
  std::array<char, 128> sizes{};
  std::snprintf(sizes.data(), sizes.size(),
                ", %d cores, %.0f MiB of last-level cache, %.1f GiB of memory, ", machine.cores,
                static_cast<double>(machine.last_level_cache_bytes) / 0x1p20,
                static_cast<double>(machine.memory_bytes) / 0x1p30);
  return machine.cpu + sizes.data() + date();
}

}  // namespace lockstep::bench
