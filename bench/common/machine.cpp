#include "bench/common/machine.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <unistd.h>

namespace lockstep::bench {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

// "32768K" of the kernel's cache files.
std::int64_t cache_size(const std::string& text) {
  try {
    return std::stoll(text) * 1024;
  } catch (const std::exception&) {
    return 0;
  }
}

// Cores that share a cache name the same list of sharers, so that it is counted once.
std::int64_t last_level_cache_bytes() {
  std::map<std::string, std::int64_t> size_of_sharers;
  for (int cpu = 0; cpu < static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF)); ++cpu) {
    const std::filesystem::path caches =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache";
    std::filesystem::path last;
    for (int index = 0; std::filesystem::exists(caches / ("index" + std::to_string(index)));
         ++index) {
      last = caches / ("index" + std::to_string(index));
    }
    if (!last.empty()) {
      size_of_sharers[first_line(last / "shared_cpu_list")] = cache_size(first_line(last / "size"));
    }
  }
  std::int64_t total = 0;
  for (const auto& [sharers, bytes] : size_of_sharers) {
    total += bytes;
  }
  return total;
}

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
  return {.cpu = cpu_name(),
          .cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
          .last_level_cache_bytes = last_level_cache_bytes(),
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
