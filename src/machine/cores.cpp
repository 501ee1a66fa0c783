#include "machine/cores.h"

#include "lockstep/error.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <sstream>

namespace lockstep::machine {
namespace {

using Quota = std::optional<double>;

Quota smaller(Quota a, Quota b) {
  if (!a || !b) {
    return a ? a : b;
  }
  return std::min(*a, *b);
}

Quota divide(const std::string& quota_us, double period_us) {
  const double quota = std::strtod(quota_us.c_str(), nullptr);  // "max" and "-1" mean none
  return quota > 0 && period_us > 0 ? Quota(quota / period_us) : std::nullopt;
}

Quota version2_quota(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  return file >> quota >> period ? divide(quota, period) : std::nullopt;
}

Quota version1_quota(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  std::string quota;
  double period = 0;
  return quota_file >> quota && period_file >> period ? divide(quota, period) : std::nullopt;
}

// The smallest quota on the way from root + path up to root itself. In a container the path may
// name folders that only exist outside; those are skipped, the root is what the container sees.
template <class ReadQuota>
Quota smallest_upwards(const std::string& root, std::string path, ReadQuota read_quota) {
  Quota smallest;
  while (!path.empty() && path != "/") {
    smallest = smaller(smallest, read_quota(root + path));
    path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return smaller(smallest, read_quota(root));
}

bool names_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == "cpu") {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<int> allowed_cores() {
  for (int limit = 1024; limit <= (1 << 20); limit *= 2) {  // the kernel's mask may be longer
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(limit));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(limit));
    const bool complete = sched_getaffinity(0, bytes, set) == 0;
    std::vector<int> cores;
    for (int core = 0; complete && core < limit; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, set)) {
        cores.push_back(core);
      }
    }
    CPU_FREE(set);
    if (complete) {
      return cores;
    }
    if (errno != EINVAL) {
      break;
    }
  }
  throw SystemError(std::string("sched_getaffinity: ") + std::strerror(errno));
}

std::optional<double> cpu_quota(const CgroupFiles& files) {
  std::ifstream membership(files.membership);
  Quota smallest;
  for (std::string line; std::getline(membership, line);) {  // hierarchy:controllers:path
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      smallest = smaller(smallest, smallest_upwards(files.mount, path, version2_quota));
    } else if (names_cpu(controllers)) {
      for (const std::string& folder : {controllers, std::string("cpu")}) {
        smallest =
            smaller(smallest, smallest_upwards(files.mount + "/" + folder, path, version1_quota));
      }
    }
  }
  return smallest;
}

int usable_cores(std::size_t cores, std::optional<double> quota) {
  return std::max(1,
                  static_cast<int>(std::min(static_cast<double>(cores), quota.value_or(HUGE_VAL))));
}

}  // namespace lockstep::machine
