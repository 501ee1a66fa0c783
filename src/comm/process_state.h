// What the kernel says of a process: whether it runs, waits or is stopped, and the processor time
// it has used. For telling a rank that computes from one that hangs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::comm {

struct ProcessState {
  enum class Activity : std::uint8_t { running, asleep, on_device, stopped, traced, gone };
  Activity activity = Activity::gone;
  std::int64_t cpu_ms = 0;       // of all its threads, user and system
  std::uint64_t started_at = 0;  // clock ticks after boot: tells it from a later process's number
};

// nullopt where /proc has no such process (or is not there).
std::optional<ProcessState> state_of(pid_t process);

// The same from the text of /proc/PID/stat; nullopt where it is not one.
std::optional<ProcessState> parse_stat(std::string_view text);

// Of this machine: of its kernel's start (empty where /proc does not say), and its name.
std::string boot_id();
std::string host_name();

}  // namespace lockstep::comm
