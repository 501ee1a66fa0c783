// Finding and ending everything a process started, whatever sessions and groups it moved to. Works
// because the process is a child subreaper: what loses its parent becomes its child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <vector>

namespace lockstep::launch {

// Living and unreaped processes below `root`, without the subtrees of `except`.
std::vector<pid_t> descendants_of(pid_t root, std::span<const pid_t> except = {});

// SIGKILL to everything below this process.
void kill_descendants(std::span<const pid_t> except = {});

// Kills and reaps everything below this process until nothing is left; gives up after `patience`
// (a process in uninterruptible sleep can't be killed) and then returns false.
bool end_descendants(std::chrono::milliseconds patience, std::span<const pid_t> except = {});

}  // namespace lockstep::launch
