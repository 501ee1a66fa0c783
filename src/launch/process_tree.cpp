#include "launch/process_tree.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <map>
#include <memory>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace lockstep::launch {
namespace {

using Children = std::multimap<pid_t, pid_t>;

// The parent, from /proc/PID/stat: "PID (name) state parent …", where the name may hold anything.
pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(file, stat, '\0');
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat.size()) {
    return -1;
  }
  return static_cast<pid_t>(std::atoi(stat.c_str() + name_end + 4));
}

// All processes of the host by parent. /proc/PID/task/*/children would be shorter, but a kernel may
// lack it, and it misses children while others exit.
Children all_processes() {
  Children children;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid > 0) {
      children.emplace(parent_of(entry->d_name), pid);
    }
  }
  return children;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root, std::span<const pid_t> except) {
  const Children children = all_processes();
  std::vector<pid_t> found{root};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto [begin, end] = children.equal_range(found[next]);
    for (auto child = begin; child != end; ++child) {
      if (std::ranges::find(except, child->second) == except.end()) {
        found.push_back(child->second);
      }
    }
  }
  found.erase(found.begin());
  return found;
}

void kill_descendants(std::span<const pid_t> except) {
  for (const pid_t pid : descendants_of(::getpid(), except)) {
    ::kill(pid, SIGKILL);
  }
}

bool end_descendants(std::chrono::milliseconds patience, std::span<const pid_t> except) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const std::vector<pid_t> left = descendants_of(::getpid(), except);
    if (left.empty()) {
      return true;
    }
    for (const pid_t pid : left) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace lockstep::launch
