#include "comm/memory_limits.h"

#include "lockstep/error.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace lockstep::comm {
namespace {

// How the files of one version of control groups are called.
struct Names {
  std::string root;
  std::string limit;
  std::string usage;
  std::string droppable;  // a line of memory.stat
};

// The number in a file of one; nothing when it can't be read or says "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The number behind `key` in a file of "key number" lines.
std::optional<std::int64_t> number_behind(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    if (words >> name >> value && name == key) {
      return value;
    }
  }
  return std::nullopt;
}

void take_less(MemoryRoom& room, std::int64_t bytes, const std::string& limited_by) {
  if (bytes < room.bytes) {
    room = {std::max<std::int64_t>(bytes, 0), limited_by};
  }
}

void take_control_group(MemoryRoom& room, const Names& names, const std::string& path) {
  const std::string folder = names.root + path + "/";
  const auto limit = number_in(folder + names.limit);
  const auto usage = number_in(folder + names.usage);
  if (!limit || !usage) {
    return;
  }
  const std::int64_t used =
      *usage - number_behind(folder + "memory.stat", names.droppable).value_or(0);
  take_less(room, *limit - used,
            "control group '" + (path.empty() ? "/" : path) + "' (limit " + std::to_string(*limit) +
                " bytes, in use " + std::to_string(used) + ")");
}

// The group and every one above it; inside a container the path may lead out of what is visible.
void take_ancestors(MemoryRoom& room, const Names& names, std::string path) {
  while (true) {
    while (!path.empty() && path.back() == '/') {
      path.pop_back();
    }
    take_control_group(room, names, path);
    if (path.empty()) {
      return;
    }
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

// A line of /proc/self/cgroup: "hierarchy:controllers:path".
void take_line(MemoryRoom& room, const std::string& line, const HostFiles& files) {
  const auto first = line.find(':');
  const auto second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) {
    return;
  }
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string path = line.substr(second + 1);
  if (names_memory(controllers)) {
    take_ancestors(room,
                   {files.control_groups + "/memory", "memory.limit_in_bytes",
                    "memory.usage_in_bytes", "total_inactive_file"},
                   path);
  }
  if (controllers.empty()) {
    for (const char* mount : {"", "/unified"}) {
      take_ancestors(
          room, {files.control_groups + mount, "memory.max", "memory.current", "inactive_file"},
          path);
    }
  }
}

}  // namespace

MemoryRoom memory_room(const HostFiles& files) {
  MemoryRoom room{std::numeric_limits<std::int64_t>::max(), "nothing known"};
  if (const auto kilobytes = number_behind(files.memory_information, "MemAvailable:")) {
    take_less(room, *kilobytes * 1024, "MemAvailable of this host");
  }
  std::ifstream groups(files.control_groups_of_process);
  for (std::string line; std::getline(groups, line);) {
    take_line(room, line, files);
  }
  return room;
}

void require_memory(std::int64_t bytes, const std::string& what, const HostFiles& files) {
  const MemoryRoom room = memory_room(files);
  if (bytes > room.bytes) {
    throw SystemError(what + ": needs " + std::to_string(bytes) + " bytes of shared memory, but " +
                      room.limited_by + " leaves " + std::to_string(room.bytes) +
                      ": use fewer ranks, a smaller model, or raise the limit");
  }
}

}  // namespace lockstep::comm
