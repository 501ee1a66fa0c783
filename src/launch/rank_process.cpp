#include "launch/rank_process.h"

#include "launch/pointers.h"
#include "lockstep/error.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::launch {
namespace {

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw SystemError(std::string("pipe: ") + std::strerror(errno) +
                      "; raise the limit of open files (ulimit -n) or start fewer ranks");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// What the child needs, made before the fork: after it nothing may allocate.
struct ChildPlan {
  explicit ChildPlan(const Job& job, int rank)
      : program(job.program),
        arguments(job.command),
        environment(environment_of(job, rank)),
        cores(job.placement.cores_of_rank.at(static_cast<std::size_t>(rank))),
        core_set_bytes(CPU_ALLOC_SIZE(static_cast<std::size_t>(cores.back() + 1))),
        core_set(core_set_bytes) {
    for (const int core : cores) {
      CPU_SET_S(static_cast<std::size_t>(core), core_set_bytes, set());
    }
  }
  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(core_set.data()); }

  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<int> cores;
  std::size_t core_set_bytes;
  std::vector<std::byte> core_set;
  int output = -1;  // what becomes descriptors 1 and 2; -1: stay as they are
  int error = -1;
  int failure = -1;  // errno goes here when the program can't be executed
  pid_t parent = -1;
  sigset_t mask{};
};

void restore_signals(const ChildPlan& plan) {
  ::signal(SIGPIPE, SIG_DFL);
  // A rank that shares the terminal writes to it from the background; it must not be stopped.
  ::signal(SIGTTOU, plan.output < 0 ? SIG_IGN : SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &plan.mask, nullptr);
}

void connect_streams(const ChildPlan& plan) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  if (plan.output >= 0) {
    ::dup2(plan.output, STDOUT_FILENO);
    ::dup2(plan.error, STDERR_FILENO);
  }
}

[[noreturn]] void run_child(ChildPlan& plan, char* const* arguments, char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) {  // it died before the line above
    ::_exit(127);
  }
  ::sched_setaffinity(0, plan.core_set_bytes,
                      plan.set());  // refused in some sandboxes: then unpinned
  connect_streams(plan);
  restore_signals(plan);
  ::execve(plan.program.c_str(), arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t told = ::write(plan.failure, &reason, sizeof(reason));
  ::_exit(127);
}

// The child's end closes at exec, so that nothing comes when all went well.
void wait_for_exec(pid_t pid, FileDescriptor failure, const std::string& program) {
  int reason = 0;
  ssize_t bytes;
  do {
    bytes = ::read(failure.get(), &reason, sizeof(reason));
  } while (bytes < 0 && errno == EINTR);
  if (bytes != sizeof(reason)) {
    return;
  }
  ::waitpid(pid, nullptr, 0);
  throw SystemError("program '" + program + "' can't be executed: " + std::strerror(reason) +
                    (reason == ENOEXEC ? "; a script needs a first line like #!/bin/sh" : ""));
}

}  // namespace

StartedRank start_rank(const Job& job, int rank, Stream stream, const sigset_t& mask) {
  ChildPlan plan(job, rank);
  std::vector<char*> arguments = pointers_to(plan.arguments);
  std::vector<char*> environment = pointers_to(plan.environment);
  Pipe output;
  Pipe error;
  if (stream == Stream::piped) {
    output = make_pipe();
    error = make_pipe();
    plan.output = output.write.get();
    plan.error = error.write.get();
  }
  Pipe failure = make_pipe();
  plan.failure = failure.write.get();
  plan.parent = ::getpid();
  plan.mask = mask;
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw SystemError("fork of rank " + std::to_string(rank) + ": " + std::strerror(errno) +
                      "; raise the limit of processes (ulimit -u) or start fewer ranks");
  }
  if (pid == 0) {
    run_child(plan, arguments.data(), environment.data());
  }
  ::setpgid(pid, pid);  // here too: whoever runs first
  failure.write.reset();
  wait_for_exec(pid, std::move(failure.read), job.program);
  for (const FileDescriptor* end : {&output.read, &error.read}) {
    if (*end) {
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
  }
  return {pid, std::move(output.read), std::move(error.read)};
}

}  // namespace lockstep::launch
