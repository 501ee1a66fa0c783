#include "cli/host_checks.h"

#include "base/quantity.h"
#include "comm/memory_limits.h"
#include "machine/cores.h"
#include "machine/pages.h"
#include "machine/processors.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <gnu/libc-version.h>
#include <limits>
#include <string_view>
#include <unistd.h>

namespace lockstep::cli {
namespace {

using quantity::bytes_text;

std::string plural(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string bytes_or_none(std::optional<std::int64_t> bytes) {
  return bytes ? std::to_string(*bytes) + " bytes" : "no limit";
}

// "0-3,8" of ascending numbers.
std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]) +
            (last > i ? "-" + std::to_string(numbers[last]) : "");
    i = last + 1;
  }
  return text;
}

Finding check_versions(const Host& host) {
  return {"versions", Verdict::ok,
          "lockstep " LOCKSTEP_VERSION ", " + host.kernel + ", " + host.c_library, ""};
}

Finding check_processor(const Host& host) {
  const std::int64_t cache = machine::last_level_cache_bytes(host.files);
  return {"processor", Verdict::ok,
          machine::cpu_name(host.files) + ", last-level cache " +
              (cache > 0 ? std::to_string(cache >> 20) + " MiB" : "unknown"),
          ""};
}

Finding check_cores(const Host& host) {
  const machine::Topology topology = machine::topology(host.files);
  const auto quota = machine::cpu_quota({.membership = host.files.path("/proc/self/cgroup"),
                                         .mount = host.files.path("/sys/fs/cgroup")});
  std::array<char, 32> quota_text{};
  std::snprintf(quota_text.data(), quota_text.size(), "%.2g", quota.value_or(0.0));
  Finding finding{"cores", Verdict::ok,
                  std::to_string(machine::usable_cores(host.cores.size(), quota)) + " usable: " +
                      (topology.online > 0 ? std::to_string(topology.online) : "unknown") +
                      " online, affinity " + list_of(host.cores) + ", control group's quota " +
                      (quota ? quota_text.data() : "none"),
                  ""};
  if (quota && *quota < static_cast<double>(host.cores.size())) {
    finding.verdict = Verdict::warn;
    finding.fix = "ranks stall when the quota is used up: raise cpu.max, or start at most " +
                  plural(machine::usable_cores(host.cores.size(), quota), "rank");
  }
  return finding;
}

Finding check_topology(const Host& host) {
  const machine::Topology topology = machine::topology(host.files);
  return {"topology", Verdict::ok,
          plural(topology.threads_per_core, "thread") + " per core, " +
              plural(topology.numa_nodes, "NUMA node"),
          topology.threads_per_core > 1
              ? "two ranks on one core slow each other: let ranks x threads be the cores"
              : ""};
}

Finding check_instructions(const Host& host) {
  constexpr std::array<std::string_view, 9> kMattering{
      "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "sve", "bf16"};
  std::string found;
  const std::vector<std::string> features = machine::cpu_features(host.files);
  for (const std::string_view wanted : kMattering) {
    if (std::ranges::find(features, wanted) != features.end()) {
      found.append(found.empty() ? "" : " ").append(wanted);
    }
  }
  if (features.empty()) {
    return {"instructions", Verdict::warn, "unknown: /proc/cpuinfo names none",
            "mount /proc, so that figures can be told apart"};
  }
  if (!machine::multiplies_bf16(features)) {
    return {"instructions", Verdict::warn,
            (found.empty() ? "none of those that matter" : found) + "; no bf16 products",
            "--precision bf16 saves no time here, use --precision f32"};
  }
  return {"instructions", Verdict::ok, found, ""};
}

Finding check_memory(const Host& host) {
  constexpr std::int64_t kTight = 1'000'000'000;
  const comm::MemoryRoom room =
      comm::memory_room({.memory_information = host.files.path("/proc/meminfo"),
                         .control_groups_of_process = host.files.path("/proc/self/cgroup"),
                         .control_groups = host.files.path("/sys/fs/cgroup")});
  if (room.bytes == std::numeric_limits<std::int64_t>::max()) {
    return {"memory", Verdict::warn, "unknown: /proc/meminfo can't be read", "mount /proc"};
  }
  const bool tight = room.bytes < kTight;
  return {"memory", tight ? Verdict::warn : Verdict::ok,
          bytes_text(room.bytes) + " free, limited by " + room.limited_by,
          tight ? "gpt2-124m takes 2 GB per rank: end other programs or raise the limit" : ""};
}

Finding check_shared_memory(const Host& host) {
  if (!host.shared_memory_refusal.empty()) {
    return {"shared memory", Verdict::fail, host.shared_memory_refusal,
            "ranks share gradients through memfd_create and mmap: allow both (seccomp, container "
            "policy)"};
  }
  return {"shared memory", Verdict::ok,
          "memfds work; /dev/shm " +
              (host.dev_shm_bytes ? bytes_text(*host.dev_shm_bytes) : std::string("not mounted")) +
              " (not needed)",
          ""};
}

Finding check_limits(const Host& host) {
  constexpr std::int64_t kEnoughFiles = 1024;
  Finding finding{"limits", Verdict::ok,
                  "open files " +
                      (host.open_files ? std::to_string(*host.open_files) : "without limit") +
                      ", locked memory " + bytes_or_none(host.locked_bytes) + " (none is locked)",
                  ""};
  if (host.open_files && *host.open_files < kEnoughFiles) {
    finding.verdict = Verdict::warn;
    finding.fix = "a rank keeps a few files per peer: ulimit -n " + std::to_string(kEnoughFiles);
  }
  return finding;
}

Finding check_pages(const Host& host) {
  const auto shared = machine::shared_pages(host.files);
  const auto own = machine::private_pages(host.files);
  Finding finding{
      "huge pages", Verdict::ok,
      "shared memory " + shared.value_or("unknown") + ", other memory " + own.value_or("unknown"),
      ""};
  if (!machine::may_use_huge_pages(shared)) {
    finding.verdict = Verdict::warn;
    finding.fix =
        "gradients lie in 4 KB pages: echo advise | sudo tee "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  } else if (!machine::may_use_huge_pages(own)) {
    finding.verdict = Verdict::warn;
    finding.fix =
        "parameters lie in 4 KB pages: echo madvise | sudo tee "
        "/sys/kernel/mm/transparent_hugepage/enabled";
  }
  return finding;
}

std::optional<std::int64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(limit.rlim_cur);
}

// Does what a group's memory does, with one page.
std::string shared_memory_refusal() {
  constexpr std::size_t kPage = 4096;
  const auto refused = [](const char* call) {
    return std::string(call) + ": " + std::strerror(errno);
  };
  const int descriptor = ::memfd_create("lockstep-doctor", MFD_CLOEXEC);
  if (descriptor < 0) {
    return refused("memfd_create");
  }
  std::string refusal;
  if (::ftruncate(descriptor, kPage) != 0) {
    refusal = refused("ftruncate of a memfd");
  } else if (void* const page =
                 ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
             page == MAP_FAILED) {
    refusal = refused("mmap of a memfd");
  } else {
    std::memset(page, 1, kPage);
    ::munmap(page, kPage);
  }
  ::close(descriptor);
  return refusal;
}

std::optional<std::int64_t> file_system_bytes(const char* path) {
  struct statvfs system {};
  if (::statvfs(path, &system) != 0) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(system.f_bsize * system.f_blocks);
}

}  // namespace

Host this_host() {
  utsname kernel{};
  ::uname(&kernel);
  return {.files = machine::FileTree(),
          .kernel = std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine,
          .c_library = std::string("glibc ") + ::gnu_get_libc_version(),
          .cores = machine::allowed_cores(),
          .open_files = soft_limit(RLIMIT_NOFILE),
          .locked_bytes = soft_limit(RLIMIT_MEMLOCK),
          .dev_shm_bytes = file_system_bytes("/dev/shm"),
          .shared_memory_refusal = shared_memory_refusal()};
}

std::vector<Finding> check_host(const Host& host) {
  std::vector<Finding> findings;
  for (const auto check :
       {check_versions, check_processor, check_cores, check_topology, check_instructions,
        check_memory, check_shared_memory, check_limits, check_pages}) {
    findings.push_back(check(host));
  }
  return findings;
}

}  // namespace lockstep::cli
