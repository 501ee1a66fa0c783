// Runs a program as a user does, for tests of what users see: its streams, how it ended, and what
// it left behind. Every process that it starts carries a mark in its environment.
#pragma once

#include "support/temporary_folder.h"

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::test {

class StartedProgram {
 public:
  // `command`: path and arguments. `environment`: variables ("A=b") besides this process's own.
  explicit StartedProgram(std::vector<std::string> command,
                          const std::vector<std::string>& environment = {});
  // Kills what is left of it, by the mark.
  ~StartedProgram();
  StartedProgram(const StartedProgram&) = delete;
  StartedProgram& operator=(const StartedProgram&) = delete;

  pid_t pid() const { return pid_; }
  // The exit code, 128 + signal when it was killed, -1 when it did not end in time.
  int wait(std::chrono::milliseconds patience = std::chrono::seconds(20));
  std::string output() const;
  std::string error() const;
  // Waits until `text` is in output() or error().
  bool wait_for_text(const std::string& text,
                     std::chrono::milliseconds patience = std::chrono::seconds(20)) const;
  // Living processes that carry the mark.
  std::vector<pid_t> marked_processes() const;
  // Whether none is left, or becomes so in time.
  bool nothing_left(std::chrono::milliseconds patience = std::chrono::seconds(5)) const;

 private:
  std::string mark_;
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int exit_code_ = -1;
  bool reaped_ = false;
};

// Lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace lockstep::test
