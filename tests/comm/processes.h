// Ranks as real processes, forked from the test while it has one thread: for what only processes
// can do, which is to die. A rank reports its outcome through its exit status and a pipe.
#pragma once

#include "lockstep/group.h"
#include "support/leaks.h"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::test {

// What became of a rank's process.
struct Ended {
  int status = 0;    // as waitpid gives it
  std::string text;  // what the body threw: "PeerLost: …"; empty where it returned
  bool clean() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

inline std::string kind_of(const std::exception& error) {
  if (dynamic_cast<const PeerLost*>(&error) != nullptr) {
    return "PeerLost";
  }
  if (dynamic_cast<const TimedOut*>(&error) != nullptr) {
    return "TimedOut";
  }
  if (dynamic_cast<const Mismatch*>(&error) != nullptr) {
    return "Mismatch";
  }
  if (dynamic_cast<const GroupPoisoned*>(&error) != nullptr) {
    return "GroupPoisoned";
  }
  if (dynamic_cast<const UsageError*>(&error) != nullptr) {
    return "UsageError";
  }
  return dynamic_cast<const SystemError*>(&error) != nullptr ? "SystemError" : "other";
}

class Processes {
 public:
  // A job whose name no other one has.
  Processes() : job_("test-" + std::to_string(::getpid()) + "-" + std::to_string(::random())) {}
  ~Processes() {
    for (const Child& child : children_) {
      if (child.process > 0) {
        ::kill(child.process, SIGKILL);
        ::waitpid(child.process, nullptr, 0);
      }
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  const std::string& job() const { return job_; }

  // Starts the next rank.
  pid_t start(const std::function<void()>& body) {
    int ends[2];
    if (::pipe(ends) != 0) {
      throw std::runtime_error("pipe");
    }
    const pid_t process = ::fork();
    if (process == 0) {
      ::close(ends[0]);
      run(body, ends[1]);
    }
    ::close(ends[1]);
    children_.push_back({process, ends[0]});
    return process;
  }

  pid_t process(int rank) const { return children_.at(static_cast<std::size_t>(rank)).process; }

  // Waits for a rank; one that takes longer than the patience is killed, which shows in its status.
  Ended end(int rank, std::chrono::milliseconds patience = std::chrono::seconds(30)) {
    Child& child = children_.at(static_cast<std::size_t>(rank));
    pollfd over{child.text, POLLIN, 0};
    if (::poll(&over, 1, static_cast<int>(patience.count())) <= 0) {
      ::kill(child.process, SIGKILL);
    }
    Ended ended;
    char piece[512];
    for (ssize_t n = 0; (n = ::read(child.text, piece, sizeof piece)) > 0;) {
      ended.text.append(piece, static_cast<std::size_t>(n));
    }
    ::close(child.text);
    ::waitpid(child.process, &ended.status, 0);
    child.process = 0;
    EXPECT_FALSE(leaked(ended.status))
        << "rank " << rank << " lost memory: LeakSanitizer's list is above";
    return ended;
  }

 private:
  struct Child {
    pid_t process;
    int text;
  };

  [[noreturn]] static void run(const std::function<void()>& body, int text) {
    int status = 0;
    try {
      body();
    } catch (const std::exception& error) {
      const std::string line = kind_of(error) + ": " + error.what();
      status = ::write(text, line.data(), line.size()) > 0 ? 1 : 2;
    }
    end_process(status);
  }

  std::string job_;
  std::vector<Child> children_;
};

}  // namespace lockstep::test
