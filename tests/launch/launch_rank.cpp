// A rank without LibTorch for tests of the launcher: behaves or fails as its first word says.
#include "base/environment.h"
#include "launch/report.h"

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using lockstep::launch::FailureKind;
using lockstep::launch::report_failure;

long rank() { return static_cast<long>(lockstep::environment::integer("RANK").value_or(0)); }

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

[[noreturn]] void wait_to_be_ended() {
  for (;;) {
    pause_ms(1000);
  }
}

// Rank 1 fails a moment after the start; the others would run on for ever.
int fail_on_rank_1(const std::function<void()>& how) {
  if (rank() == 1) {
    pause_ms(100);
    how();
  }
  wait_to_be_ended();
}

void fault() {
  ::signal(SIGSEGV, SIG_DFL);  // sanitizers catch it
  ::raise(SIGSEGV);
}

// In a session of its own and without its parent: only its ancestry still tells whose it is.
void start_detached_grandchild() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::fork() == 0) {
      ::signal(SIGTERM, SIG_IGN);
      wait_to_be_ended();
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

int report_in_the_wrong_order() {
  if (rank() == 1) {
    pause_ms(400);
    report_failure(FailureKind::cause, "the disk is full");
    return 1;
  }
  report_failure(FailureKind::consequence, "rank 1 was lost");
  return 1;
}

int report_without_leaving() {
  if (rank() == 1) {
    report_failure(FailureKind::cause, "stuck after a failure");
  }
  wait_to_be_ended();
}

int count_descriptors() {
  using Iterator = std::filesystem::directory_iterator;
  const auto count = std::distance(Iterator("/proc/self/fd"), Iterator());
  std::printf("%ld descriptors\n", static_cast<long>(count) - 1);  // one is the look itself
  return 0;
}

int flood() {
  const std::string line(100'000, static_cast<char>('a' + rank()));
  for (int i = 0; i < 20; ++i) {
    std::puts(line.c_str());
  }
  std::fputs("the end", stdout);  // without \n, and then straight out
  std::fflush(stdout);
  ::kill(::getpid(), rank() == 1 ? SIGKILL : SIGCONT);
  return 0;
}

int ignore_signals() {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  start_detached_grandchild();
  std::puts("ready");
  std::fflush(stdout);
  wait_to_be_ended();
}

int leave_a_grandchild_behind() {
  start_detached_grandchild();
  std::puts("ready");
  return 0;
}

int announce_and_wait() {
  start_detached_grandchild();
  std::puts("ready");
  std::fflush(stdout);
  wait_to_be_ended();
}

const std::map<std::string, std::function<int()>> kModes{
    {"exception", [] { return fail_on_rank_1([] { throw std::runtime_error("no such token"); }); }},
    {"bad_alloc", [] { return fail_on_rank_1([] { throw std::bad_alloc(); }); }},
    {"exit3", [] { return fail_on_rank_1([] { ::_exit(3); }); }},
    {"segv", [] { return fail_on_rank_1(fault); }},
    {"kill9", [] { return fail_on_rank_1([] { ::raise(SIGKILL); }); }},
    {"wrong-order", report_in_the_wrong_order},
    {"stuck", report_without_leaving},
    {"descriptors", count_descriptors},
    {"flood", flood},
    {"ignore-signals", ignore_signals},
    {"leave-grandchild", leave_a_grandchild_behind},
    {"wait", announce_and_wait},
};

}  // namespace

int main(int argc, char** argv) { return kModes.at(argc > 1 ? argv[1] : "")(); }
