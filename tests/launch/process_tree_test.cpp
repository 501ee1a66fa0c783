#include "launch/process_tree.h"

#include "support/leaks.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <signal.h>
#include <unistd.h>

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

// Runs `body` in a child that is a subreaper, and returns its exit code: the functions under test
// act on everything below the calling process.
template <class Body>
int in_subreaper(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::alarm(20);
    test::end_process(body());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A process in a session of its own whose parent has exited; returns its pid.
pid_t detached_process() {
  std::array<int, 2> ends;
  if (::pipe(ends.data()) != 0) {
    return -1;
  }
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setsid();
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGTERM, SIG_IGN);
      for (;;) {
        ::pause();
      }
    }
    [[maybe_unused]] const auto told = ::write(ends[1], &child, sizeof(child));
    ::_exit(0);
  }
  ::waitpid(parent, nullptr, 0);
  pid_t pid = -1;
  [[maybe_unused]] const auto heard = ::read(ends[0], &pid, sizeof(pid));
  ::close(ends[0]);
  ::close(ends[1]);
  return pid;
}

TEST(ProcessTree, finds_and_ends_detached_grandchildren) {
  EXPECT_EQ(in_subreaper([] {
              const pid_t pid = detached_process();
              const auto found = descendants_of(::getpid());
              if (found != std::vector<pid_t>{pid}) {
                return 1;
              }
              if (!end_descendants(5s) || ::kill(pid, 0) == 0) {
                return 2;
              }
              return descendants_of(::getpid()).empty() ? 0 : 3;
            }),
            0);
}

TEST(ProcessTree, leaves_the_excepted_alone) {
  EXPECT_EQ(in_subreaper([] {
              const pid_t kept = detached_process();
              const pid_t ended = detached_process();
              const std::array except{kept};
              if (!end_descendants(5s, except) || ::kill(ended, 0) == 0) {
                return 1;
              }
              if (::kill(kept, 0) != 0) {
                return 2;
              }
              return end_descendants(5s) ? 0 : 3;
            }),
            0);
}

TEST(ProcessTree, nothing_below_is_nothing_to_do) {
  EXPECT_EQ(in_subreaper([] {
              kill_descendants();
              return descendants_of(::getpid()).empty() && end_descendants(0ms) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace lockstep::launch
