// Runs a program to its end and keeps what it printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::launch {

struct CapturedOptions {
  std::vector<std::string> command;      // a path, or a name looked up in PATH; its arguments
  std::vector<std::string> environment;  // "NAME=value", instead of this process's of that name
  // After which it gets SIGTERM, 3 s later SIGKILL.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

struct Captured {
  int exit_code = 0;  // 128 + signal when it was killed
  bool timed_out = false;
  std::string output;
  std::string error;
  double seconds = 0;
};

// The program reads /dev/null. Throws SystemError when it can't be started. Output is kept in
// memory that counts as this process's.
Captured run_captured(const CapturedOptions& options);

}  // namespace lockstep::launch
